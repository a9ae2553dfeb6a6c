"""variadic-op-splitter: no op has more operands than a kernel takes parameters."""

from __future__ import annotations

from collections.abc import Callable

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class VariadicOpSplitter(Expander):
    """Joins more than ``most`` arrays by parts first, then the parts.

    The space for a GPU kernel's parameters is limited. The operands left over after whole parts wait for the next
    round, so that no small kernel is made for it alone. The parts are in memory until they are joined. ``splits`` tells
    which concatenations are joined so; None: all.

    ROOT r = f32[130] concatenate(f32[1] x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x), dimensions={0}
    ->
    whole = f32[128] concatenate(x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x), dimensions={0}
    ROOT r = f32[130] concatenate(whole, x, x), dimensions={0}
    """

    name = "variadic-op-splitter"
    constraints = (
        Constraint("variadic-op-splitter", "instruction-fusion", "it makes kernels of parts"),
        Constraint("variadic-op-splitter", "priority-fusion", "it makes kernels of parts"),
    )
    opcodes = frozenset({"concatenate"})
    most: int = 128
    splits: Callable[[Instruction], bool] | None = None

    def matches(self, i: Instruction) -> bool:
        return len(i.operands) > self.most and (self.splits is None or self.splits(i))

    def expand(self, i: Instruction) -> Instruction:
        c, (d,) = i.parent, i.attrs["dimensions"]
        assert c is not None
        parts = list(i.operands)
        while len(parts) > 1:
            whole = max(len(parts) // self.most, 1) * self.most
            runs = [parts[n : n + self.most] for n in range(0, min(whole, len(parts)), self.most)]
            parts = [_joined(i, run, d) for run in runs] + parts[whole:]
        return parts[0]


def _joined(i: Instruction, run: list[Instruction], d: int) -> Instruction:
    assert i.parent is not None
    dims = list(i.shape.dims)
    dims[d] = sum(x.shape.dims[d] for x in run)
    return i.parent.add("concatenate", run, array(i.shape.element_type, dims), like=i, dimensions=(d,))
