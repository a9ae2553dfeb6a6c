"""complex-convolution-splitter: convolutions of complex numbers by those of their parts."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ComplexConvolutionSplitter(Expander):
    """Convolves the parts of complex numbers, which there is fast code for.

    The parts of the input are side by side as features, those of the kernel as two by two of them: one convolution,
    with as many multiplications. Groups, to which no features can be added, take a convolution for each pair of parts.

    ROOT r = c64[1,8,8,4] convolution(c64[1,8,8,2] x, c64[3,3,2,4] k), window={size=3x3 pad=1_1x1_1},
      dim_labels=b01f_01io->b01f
    ->
    a = f32[1,8,8,2] real(x)
    b = f32[1,8,8,2] imag(x)
    x.1 = f32[1,8,8,4] concatenate(a, b), dimensions={3}
    c = f32[3,3,2,4] real(k)
    d = f32[3,3,2,4] imag(k)
    e = f32[3,3,2,4] negate(d)
    f = f32[3,3,4,4] concatenate(c, e), dimensions={2}
    g = f32[3,3,4,4] concatenate(d, c), dimensions={2}
    k.1 = f32[3,3,4,8] concatenate(f, g), dimensions={3}
    y = f32[1,8,8,8] convolution(x.1, k.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
    h = f32[1,8,8,4] slice(y), slice={[0:1], [0:8], [0:8], [0:4]}
    i = f32[1,8,8,4] slice(y), slice={[0:1], [0:8], [0:8], [4:8]}
    ROOT r = c64[1,8,8,4] complex(h, i)
    """

    name = "complex-convolution-splitter"
    opcodes = frozenset({"convolution"})
    constraints = (
        Constraint("complex-convolution-splitter", "convolution-canonicalization", "it makes forms of real ones"),
    )

    def matches(self, i: Instruction) -> bool:
        t = i.shape.element_type
        return len(i.operands) == 2 and t.is_complex and all(o.shape.element_type is t for o in i.operands)

    def expand(self, i: Instruction) -> Instruction:
        add = home(i).add
        (a, b), (c, d) = ((add("real", (o,)), add("imag", (o,))) for o in i.operands)
        if i.feature_group_count > 1 or i.batch_group_count > 1:
            ac, bd, ad, bc = (_convolved(i, x, k) for x, k in ((a, c), (b, d), (a, d), (b, c)))
            return add("complex", (add("subtract", (ac, bd)), add("add", (ad, bc))))
        labels = i.dim_labels
        inputs, outputs, features = (labels.kernel_input,), (labels.kernel_output,), labels.output_feature
        x = add("concatenate", (a, b), dimensions=(labels.input_feature,))
        left = add("concatenate", (c, add("negate", (d,))), dimensions=inputs)
        right = add("concatenate", (d, c), dimensions=inputs)
        y = _convolved(i, x, add("concatenate", (left, right), dimensions=outputs))
        count = i.shape.dims[features]
        whole = [(0, n, 1) for n in i.shape.dims]
        parts = [(*whole[:features], (first, first + count, 1), *whole[features + 1 :]) for first in (0, count)]
        return add("complex", [add("slice", (y,), slice=part) for part in parts])


def _convolved(i: Instruction, x: Instruction, k: Instruction) -> Instruction:
    """The convolution of other arrays, which may have more output features."""
    dims = list(i.shape.dims)
    dims[i.dim_labels.output_feature] = k.shape.dims[i.dim_labels.kernel_output]
    return home(i).attach(i.clone([x, k], x.shape.with_dims(tuple(dims))))
