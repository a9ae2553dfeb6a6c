"""while-loop-trip-count-annotator: loops that say how often they run."""

from __future__ import annotations

import json
from typing import Any

from heron.analysis.values.trip_count import counter_of, trip_count
from heron.hlo.calls.backend_config import hints
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class WhileLoopTripCountAnnotator(Pass):
    """Writes the trip count of a loop into its backend_config, with what it counts.

    The keys are XLA's: `known_trip_count` and, of loops that count to a constant, `known_init_step` and
    `known_induction_variable`. Other loops of integers known at the start are counted by running those. The rest of the
    backend_config stays, as does a count that came with the program where none is found here.

    body {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      two = s32[] constant(2)
      next = s32[] add(n, two)
      v = f32[4] get-tuple-element(s), index=1
      w = f32[4] add(v, v)
      ROOT t = (s32[], f32[4]) tuple(next, w)
    }

    condition {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT c = pred[] compare(n, ten), direction=LT
    }

    one = s32[] constant(1)
    init = (s32[], f32[4]) tuple(one, f32[4] x)
    ROOT loop = (s32[], f32[4]) while(init), condition=condition, body=body
    ->
    ROOT loop = (s32[], f32[4]) while(init), condition=condition, body=body,
      backend_config={"known_induction_variable":{"tuple_index":"0"},"known_init_step":{"init":"1","step":"2"},"known_trip_count":{"n":"5"}}
    """  # noqa: E501

    name = "while-loop-trip-count-annotator"
    looks_for = frozenset({"while"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in module.instructions():
            facts = _facts(i) if i.opcode == "while" else None
            if facts is not None:
                changed |= _annotate(i, facts)
        return changed


def _facts(loop: Instruction) -> dict[str, Any] | None:
    """The facts to annotate a loop with; None if nothing is known."""
    trips = trip_count(loop)
    if trips is None:
        return None
    facts: dict[str, Any] = {"known_trip_count": {"n": str(trips)}}
    counter = counter_of(loop)
    if counter is not None:
        facts["known_init_step"] = {"init": str(counter.start), "step": str(counter.step)}
        facts["known_induction_variable"] = {"tuple_index": str(counter.index)}
    return facts


def _annotate(loop: Instruction, facts: dict[str, Any]) -> bool:
    old, config = loop.extras.get("backend_config", ""), hints(loop)
    if old[:1] not in ("", "{"):  # something else, which is left alone
        return False
    new = json.dumps({**config, **facts}, sort_keys=True, separators=(",", ":"))
    loop.extras["backend_config"] = new
    return new != old
