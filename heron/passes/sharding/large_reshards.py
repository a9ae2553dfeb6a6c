"""large-reshards: says which collectives move much of a program's data."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import heron
from heron.analysis.cost.communication import WAYS, communicates, group_size
from heron.analysis.cost.program import trips_of
from heron.errors import HeronError
from heron.hlo.facts import is_free
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.origin import origin, source_place
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class LargeReshards(Pass):
    """Says where one reshard moves more than a share of all bytes that the program makes.

    The option `reshard_share` is the share in percent. With the option `large_reshards` such a reshard is a note in the
    trace, a warning of Python, or the error SPMD030; each names the line of Python that the reshard comes from. The
    bytes of a program are those of all values, as often as they are made.

    HloModule gathered, num_partitions=2
    x = f32[8] parameter(0)
    ROOT g = f32[16] all-gather(x), dimensions={0}, channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true
    ->
    HloModule gathered, num_partitions=2
    ROOT g = f32[16] all-gather(x), dimensions={0}, channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true
    """

    name = "large-reshards"
    constraints = (Constraint("spmd-partitioner", "large-reshards", "there are no collectives before"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.num_partitions == 1:
            return False
        steps = list(_steps(module.entry, 1.0))
        total = sum(runs * _bytes(i) for i, runs in steps)
        limit = total * ctx.options.reshard_share / 100
        for i, runs in steps:
            op = communicates(i)
            if op is None or Trait.COLLECTIVE not in op.op.traits or "to_apply" in op.op.attributes:
                continue
            moved = runs * _wire_bytes(op, module)
            if moved > limit:
                _tell(ctx, op, moved, total)
        return False


def _tell(ctx: PassContext, op: Instruction, moved: float, total: float) -> None:
    where = origin(op)
    what = f"%{op.name}" + (f" at {where}" if where else "")
    share = f"{moved:,.0f} of {total:,.0f} bytes, {100 * moved / total:.0f} %"
    ctx.decide(False, f"each device receives {share} of what the program makes", subject=op.name)
    if ctx.options.large_reshards == "error":
        hint = "`heron shard` shows why values are split so; a constraint, or a higher -O reshard_share, allows it"
        raise HeronError("SPMD030", f"a large reshard: {what}", where=str(op)[:200], why=share, hint=hint)
    text = f"a large reshard: {what}: {share} of what the program makes"
    ctx.note(text)
    if ctx.options.large_reshards == "warn":
        _warn(text, op)


def _warn(text: str, op: Instruction) -> None:
    """Warn at the line of Python that the reshard comes from; where it is not known, at the one that calls heron."""
    warnings.warn_explicit(text, UserWarning, *(source_place(op) or _caller()))


def _caller() -> tuple[str, int]:
    """The file and line of the code outside heron that runs this."""
    inside = str(Path(heron.__file__).parent)
    frames = traceback.walk_stack(None)
    places = ((frame.f_code.co_filename, line) for frame, line in frames)
    return next((place for place in places if not place[0].startswith(inside)), ("<unknown>", 0))


def _steps(c: Computation, runs: float) -> Iterator[tuple[Instruction, float]]:
    """The instructions that do something, with the number of their runs; loops of unknown length run once."""
    for i in c.instructions:
        if i.opcode == "while":
            yield from _steps(i.body, runs * (trips_of(i) or 1.0))
        elif Trait.CONTROL_FLOW in i.op.traits:
            for called in i.called:
                yield from _steps(called, runs)
        elif not is_free(i):
            yield i, runs


def _bytes(i: Instruction) -> int:
    return i.shape.total_bytes


def _wire_bytes(op: Instruction, module: Module) -> float:
    devices = group_size(op, module)
    return max(_bytes(op), sum(map(_bytes, op.operands))) * WAYS[op.opcode.removesuffix("-start")].part(max(devices, 1))
