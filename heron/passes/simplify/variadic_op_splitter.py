"""variadic-op-splitter: no op has more operands than a kernel takes parameters."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.passes.building import array
from heron.passes.expand.expander import Expander
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class VariadicOpSplitter(Expander):
    """Joins more than ``most`` arrays by parts first, then the parts.

    ROOT r = f32[130] concatenate(f32[1] x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x,
      x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x), dimensions={0}
    ->
    ...
    """

    name = "variadic-op-splitter"
    opcodes = frozenset({"concatenate"})
    most: int = 128

    def matches(self, i: Instruction) -> bool:
        return len(i.operands) > self.most

    def expand(self, i: Instruction) -> Instruction:
        c, (d,) = i.parent, i.attrs["dimensions"]
        assert c is not None
        parts = list(i.operands)
        while len(parts) > 1:
            runs = [parts[n : n + self.most] for n in range(0, len(parts), self.most)]
            parts = [run[0] if len(run) == 1 else _joined(i, run, d) for run in runs]
        return parts[0]


def _joined(i: Instruction, run: list[Instruction], d: int) -> Instruction:
    assert i.parent is not None
    dims = list(i.shape.dims)
    dims[d] = sum(x.shape.dims[d] for x in run)
    return i.parent.add("concatenate", run, array(i.shape.element_type, dims), like=i, dimensions=(d,))
