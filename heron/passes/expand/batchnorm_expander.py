"""batchnorm-expander: batch normalisation by elementwise ops and sums."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.types import F32
from heron.passes.building import applied, array, scalar, splat
from heron.passes.expand.expander import Expander
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class BatchnormExpander(Expander):
    """Writes the three batch-norm ops out, in f32 where the arrays are narrower.

    ROOT r = f32[4,2] batch-norm-inference(f32[4,2] x, f32[2] scale, f32[2] offset, f32[2] mean, f32[2] variance),
      epsilon=0.5, feature_index=1
    ->
    m = f32[4,2] broadcast(mean), dimensions={1}
    d = f32[4,2] subtract(x, m)
    half = f32[] constant(0.5)
    e = f32[2] broadcast(half), dimensions={}
    v = f32[2] add(variance, e)
    s = f32[2] rsqrt(v)
    t = f32[4,2] broadcast(s), dimensions={1}
    n = f32[4,2] multiply(d, t)
    k = f32[4,2] broadcast(scale), dimensions={1}
    y = f32[4,2] multiply(n, k)
    o = f32[4,2] broadcast(offset), dimensions={1}
    ROOT r = f32[4,2] add(y, o)
    """

    name = "batchnorm-expander"
    opcodes = frozenset({"batch-norm-training", "batch-norm-inference", "batch-norm-grad"})

    def expand(self, i: Instruction) -> Instruction:
        write = _Writer(i)
        values = [write.widened(o) for o in i.operands]
        match i.opcode:
            case "batch-norm-inference":
                return write.narrowed(write.normal(*values), i.shape.element_type)
            case "batch-norm-training":
                results = write.training(*values)
            case _:
                results = write.gradients(*values)
        assert i.parent is not None
        of = i.operands[0].shape.element_type
        return i.parent.add("tuple", [write.narrowed(x, of) for x in results], like=i)


class _Writer:
    """Writes the formulas of one instruction; vectors have one element a feature."""

    def __init__(self, i: Instruction) -> None:
        assert i.parent is not None and i.parent.module is not None
        self.i, self.c, self.module = i, i.parent, i.parent.module
        self.dims = i.operands[0].shape.dims
        self.feature: int = i.feature_index
        self.count = i.operands[0].shape.num_elements // max(1, self.dims[self.feature])

    def op(self, opcode: str, *operands: Instruction) -> Instruction:
        return self.c.add(opcode, operands, operands[0].shape.with_default_layout(), like=self.i)

    def widened(self, x: Instruction) -> Instruction:
        if x.shape.element_type.bits >= 32:
            return x
        return self.c.add("convert", [x], array(F32, x.shape.dims), like=self.i)

    def narrowed(self, x: Instruction, to: object) -> Instruction:
        if x.shape.element_type is to:
            return x
        return self.c.add("convert", [x], x.shape.with_type(to), like=self.i)  # type: ignore[arg-type]

    def spread(self, vector: Instruction) -> Instruction:
        shape = array(vector.shape.element_type, self.dims)
        return self.c.add("broadcast", [vector], shape, like=self.i, dimensions=(self.feature,))

    def sum(self, x: Instruction) -> Instruction:
        """Over all dimensions but the feature one."""
        t = x.shape.element_type
        over = tuple(d for d in range(len(self.dims)) if d != self.feature)
        return self.c.add(
            "reduce",
            [x, scalar(self.c, t, 0)],
            array(t, (self.dims[self.feature],)),
            like=self.i,
            dimensions=over,
            to_apply=applied(self.module, "add", t),
        )

    def by_count(self, vector: Instruction) -> Instruction:
        return self.op("divide", vector, splat(self.c, vector.shape, self.count))

    def inverse_root(self, variance: Instruction) -> Instruction:
        """1 / sqrt(variance + epsilon)"""
        return self.op("rsqrt", self.op("add", variance, splat(self.c, variance.shape, self.i.epsilon)))

    def normal(
        self, x: Instruction, scale: Instruction, offset: Instruction, mean: Instruction, variance: Instruction
    ) -> Instruction:
        centred = self.op("subtract", x, self.spread(mean))
        unit = self.op("multiply", centred, self.spread(self.inverse_root(variance)))
        return self.op("add", self.op("multiply", unit, self.spread(scale)), self.spread(offset))

    def training(self, x: Instruction, scale: Instruction, offset: Instruction) -> list[Instruction]:
        mean = self.by_count(self.sum(x))
        centred = self.op("subtract", x, self.spread(mean))
        variance = self.by_count(self.sum(self.op("multiply", centred, centred)))
        return [self.normal(x, scale, offset, mean, variance), mean, variance]

    def gradients(
        self, x: Instruction, scale: Instruction, mean: Instruction, variance: Instruction, g: Instruction
    ) -> list[Instruction]:
        root = self.inverse_root(variance)
        unit = self.op("multiply", self.op("subtract", x, self.spread(mean)), self.spread(root))
        for_offset = self.sum(g)
        for_scale = self.sum(self.op("multiply", g, unit))
        explained = self.op(
            "add",
            self.spread(self.by_count(for_offset)),
            self.op("multiply", unit, self.spread(self.by_count(for_scale))),
        )
        by = self.spread(self.op("multiply", scale, root))
        return [self.op("multiply", by, self.op("subtract", g, explained)), for_scale, for_offset]
