"""while-loop-trip-count-annotator: loops that say how often they run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from heron.analysis.trip_count import Counter, counter_of
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class WhileLoopTripCountAnnotator(Pass):
    """Writes the trip count of a loop that counts to a constant into its backend_config, with what it counts.

    The keys are XLA's: `known_trip_count`, `known_init_step` and `known_induction_variable`. What else the
    backend_config says stays, as does a count that came with the program where none is found here.

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

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in module.instructions():
            counter = counter_of(i) if i.opcode == "while" else None
            if counter is not None:
                changed |= _annotate(i, counter)
        return changed


def _annotate(loop: Instruction, counter: Counter) -> bool:
    old = loop.extras.get("backend_config", "")
    config = _read(old)
    if config is None:
        return False
    config["known_trip_count"] = {"n": str(counter.trips)}
    config["known_init_step"] = {"init": str(counter.start), "step": str(counter.step)}
    config["known_induction_variable"] = {"tuple_index": str(counter.index)}
    new = json.dumps(config, sort_keys=True, separators=(",", ":"))
    loop.extras["backend_config"] = new
    return new != old


def _read(text: str) -> dict[str, Any] | None:
    """The dictionary a backend_config holds; None for one that is something else, which is left alone."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None
