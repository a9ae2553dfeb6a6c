"""batchnorm-expander: batch normalisation by elementwise ops and sums."""

from __future__ import annotations

from math import prod

from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, S32
from heron.hlo.ops.normalization import BATCH_NORMS
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, scalar, splat
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


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
    dynamic = True
    opcodes = BATCH_NORMS

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
        self.x = i.operands[0]
        self.feature: int = i.feature_index
        self.others = tuple(d for d in range(self.x.shape.rank) if d != self.feature)

    def op(self, opcode: str, *operands: Instruction) -> Instruction:
        shape = next((o.shape for o in operands if o.shape.dynamic), operands[0].shape)
        return self.c.add(opcode, operands, shape.with_default_layout(), like=self.i)

    def widened(self, x: Instruction) -> Instruction:
        if x.shape.element_type.bits >= 32:
            return x
        return self.c.add("convert", [x], x.shape.with_type(F32).with_default_layout(), like=self.i)

    def narrowed(self, x: Instruction, to: object) -> Instruction:
        if x.shape.element_type is to:
            return x
        return self.c.add("convert", [x], x.shape.with_type(to), like=self.i)  # type: ignore[arg-type]

    def spread(self, vector: Instruction) -> Instruction:
        """A value of every feature, over all others."""
        marks = tuple(d == self.feature and bool(vector.shape.dynamic) for d in range(self.x.shape.rank))
        dims = self.x.shape.dims
        shape = shapes.array(vector.shape.element_type, dims, None, marks).with_default_layout()
        return self.c.add("broadcast", [vector], shape, like=self.i, dimensions=(self.feature,))

    def sum(self, x: Instruction) -> Instruction:
        """Over all dimensions but the feature one."""
        t, d = x.shape.element_type, self.feature
        shape = shapes.array(t, (x.shape.dims[d],), None, (self._is_dynamic(d),)).with_default_layout()
        zero, combiner = scalar(self.c, t, 0), applied(self.module, "add", t)
        return self.c.add("reduce", [x, zero], shape, like=self.i, dimensions=self.others, to_apply=combiner)

    def by_count(self, vector: Instruction) -> Instruction:
        """Over the number of elements a feature has."""
        dims = self.x.shape.dims
        count = prod(dims[d] for d in self.others if not self._is_dynamic(d))
        if not any(map(self._is_dynamic, self.others)):
            return self.op("divide", vector, splat(self.c, array(vector.shape.element_type, vector.shape.dims), count))
        number = scalar(self.c, S32, count)
        for d in filter(self._is_dynamic, self.others):
            number = number * self.c.add("get-dimension-size", [self.x], dimensions=(d,))
        wide = self.c.add("convert", [number], shapes.scalar(vector.shape.element_type))
        return self.op(
            "divide",
            vector,
            self.c.add("broadcast", [wide], array(wide.shape.element_type, vector.shape.dims), dimensions=()),
        )

    def _is_dynamic(self, d: int) -> bool:
        return bool(self.x.shape.dynamic and self.x.shape.dynamic[d])

    def inverse_root(self, variance: Instruction) -> Instruction:
        """1 / sqrt(variance + epsilon)"""
        return self.op(
            "rsqrt",
            self.op(
                "add", variance, splat(self.c, array(variance.shape.element_type, variance.shape.dims), self.i.epsilon)
            ),
        )

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
