"""integer-convolution-upcaster: convolutions of small integers by floats that hold every sum exactly."""

from __future__ import annotations

from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, S32, S64, ElementType
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class IntegerConvolutionUpcaster(Expander):
    """Convolves small integers as floats, where the library has those only.

    No sum may be larger than the whole numbers that the float holds one by one: 2^24 in f32, 2^53 in f64. So each step
    is exact, and the sums wrap to the type of the result as integers do. Quantized networks have convolutions of s8.

    ROOT r = s32[1,8,8,4] convolution(s8[1,8,8,2] x, s8[3,3,2,4] k), window={size=3x3 pad=1_1x1_1},
      dim_labels=b01f_01io->b01f
    ->
    a = f32[1,8,8,2] convert(x)
    b = f32[3,3,2,4] convert(k)
    c = f32[1,8,8,4] convolution(a, b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
    ROOT r = s32[1,8,8,4] convert(c)
    """

    name = "integer-convolution-upcaster"
    opcodes = frozenset({"convolution"})
    constraints = (
        Constraint("integer-convolution-upcaster", "convolution-canonicalization", "it makes forms of float ones"),
    )

    def matches(self, i: Instruction) -> bool:
        types = (i.shape.element_type, *(o.shape.element_type for o in i.operands))
        return len(i.operands) == 2 and all(t.is_integer for t in types) and _largest(i) <= 1 << 53

    def expand(self, i: Instruction) -> Instruction:
        largest = _largest(i)
        wide = F32 if largest <= 1 << 24 else F64
        product = home(i).attach(i.clone([convert(o, wide) for o in i.operands], i.shape.with_type(wide)))
        return convert(convert(product, S32 if largest < 1 << 31 else S64), i.shape.element_type)


def _largest(i: Instruction) -> int:
    """A bound of the size of every sum."""
    kernel = i.operands[1].shape.dims
    count = kernel[i.dim_labels.kernel_input] * prod(w.size for w in i.window)
    return count * prod(_most(o.shape.element_type) for o in i.operands)


def _most(t: ElementType) -> int:
    """The largest magnitude of an integer type."""
    return 1 << (t.bits - 1) if t.is_signed else (1 << t.bits) - 1
