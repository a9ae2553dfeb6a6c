"""The counters of a profiled CPU program: steps with names, work and bytes, equal ones together."""

from __future__ import annotations

from dataclasses import field

from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.records import dataclass
from heron.runtime.cpu.profile import StepTime
from heron.runtime.thunks import CopiesThunk, CopyThunk, GemmThunk, KernelThunk, RowCopiesThunk, Thunk
from heron.targets import Target


@dataclass(slots=True)
class Row:
    """A kernel, or library calls of one kind and shape: all their runs together."""

    name: str
    kind: str
    instructions: list[Instruction] = field(default_factory=list)
    runs: int = 0
    seconds: float = 0.0
    flops: float = 0.0
    #: every byte needed once, the results once
    bytes: float = 0.0
    #: what peak rates and those bytes allow
    ideal: float = 0.0

    @property
    def roofline_fraction(self) -> float:
        """Of the best time the machine allows for this work, at most 1: data in caches may be faster than memory."""
        return min(1.0, self.ideal / self.seconds) if self.seconds else 1.0


def _name(t: Thunk) -> str:
    match t:
        case KernelThunk():
            return t.kernel
        case GemmThunk():
            batch = f"{t.batch} x " if t.batch > 1 else ""
            transposed = " lhs^T" * t.lhs_transposed + " rhs^T" * t.rhs_transposed
            return f"{batch}{t.m}x{t.n}x{t.k} {t.operand_type}{transposed}"
        case CopyThunk():
            return f"{t.target.size} B"
        case RowCopiesThunk():
            return f"{t.target.size} B in {t.rows} rows of {len(t.origins)} pieces"
        case CopiesThunk():
            return f"{sum(s.size for s in t.targets)} B in {len(t.targets)} blocks"
        case _:
            return t.source


def rows(steps: list[StepTime], module: Module, target: Target, *, together: bool = True) -> list[Row]:
    """Rows in program order. ``together``: steps of one kernel, or of one library call's shape, are one row.

    An instruction that several kernels compute has its work with the first of them.
    """
    found: dict[object, Row] = {}
    by_name = {i.name: i for i in module.instructions()}
    counted: set[str] = set()
    for n, step in enumerate(steps):
        t, kind, name = step.thunk, step.thunk.kind, _name(step.thunk)
        row = found.setdefault((kind, name) if together else n, Row(name, kind))
        row.runs += step.runs
        row.seconds += step.seconds
        i = by_name.get(t.source)
        if i is not None:
            row.instructions.append(i)
        if isinstance(t, (CopyThunk, CopiesThunk, RowCopiesThunk)):
            targets = t.targets if isinstance(t, CopiesThunk) else (t.target,)
            moved = 2.0 * step.runs * sum(s.size for s in targets)
            row.bytes += moved
            row.ideal += moved / target.memory_bandwidth
        elif i is not None and t.source not in counted:
            counted.add(t.source)
            cost = kernel_cost(i)
            row.flops += step.runs * cost.flops
            row.bytes += step.runs * cost.distinct
            row.ideal += step.runs * estimate(cost, target).ideal
    return list(found.values())
