"""attention-expander: calls of cuDNN's attention as products and a softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heron.hlo.calls import attention
from heron.hlo.calls.attention import AttentionConfig
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, S32, ElementType
from heron.passes.calls.model.choice import absent
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, convert, reshape, scalar, splat, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.passes.framework.context import PassContext

_HEADS_FIRST = (0, 2, 1, 3)


@register
@dataclass(frozen=True)
class AttentionExpander(Expander):
    """Writes attention as ``softmax(scale q k^T + bias) v`` in f32, and its derivative likewise.

    With ``kept``, calls forward stay where cuDNN computes them.

    c = (bf16[2,4,16,8], u8[0]) custom-call(bf16[2,4,16,8] q, bf16[2,4,16,8] k, bf16[2,4,16,8] v),
      custom_call_target="__cudnn$fmhaSoftmax", backend_config={"cudnn_fmha_backend_config":{"fmha_scale":0.5,"mask_type":"CAUSAL"}}
    ROOT r = bf16[2,4,16,8] get-tuple-element(c), index=0
    ->
    ...
    """  # noqa: E501

    name = "attention-expander"
    opcodes = frozenset({"custom-call"})

    forward: bool = True
    kept: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        if self.kept:
            return AttentionExpander(forward=bool(absent("cudnn", ctx))).run(module, ctx)
        return super().run(module, ctx)

    def matches(self, i: Instruction) -> bool:
        return i.custom_call_target in attention.TARGETS and (self.forward or attention.read(i).backward)

    def expand(self, i: Instruction) -> Instruction:
        given, c = attention.read(i), home(i)
        w = _Writer(i, given)
        parts = w.derivative() if given.backward else w.forward()
        wanted = i.shape.tuple_shapes or (i.shape,)
        made = [convert(p, s.element_type) for p, s in zip(parts, wanted, strict=False)]
        made += [splat(c, s, 0) for s in wanted[len(made) :]]
        return c.add("tuple", made, shapes.tuple_([m.shape for m in made]), like=i) if i.shape.is_tuple else made[0]


class _Writer:
    """Writes one call out: arrays are [batch, heads, sequence, head], sums f32."""

    def __init__(self, i: Instruction, given: AttentionConfig) -> None:
        self.i, self.given, self.c = i, given, home(i)
        self.t = i.operands[0].shape.element_type
        self.q, k, v = (self._heads_first(o) for o in i.operands[:3])
        self.group = self.q.shape.dims[1] // k.shape.dims[1]
        self.k, self.v = self._repeated(k), self._repeated(v)
        self.bias = i.operands[-1] if given.has_bias else None

    # -- the two directions ------------------------------------------------------------------------------------------
    def forward(self) -> list[Instruction]:
        scores = self._scores()
        largest = self._reduced(scores, "maximum", (3,))
        weights = self._op("exponential", self._op("subtract", scores, self._spread(largest, scores)))
        total = self._reduced(weights, "add", (3,))
        share = convert(self._op("divide", weights, self._spread(total, weights)), self.t)
        y = self._product(share, self.v, 3, 2, self.t)
        statistics = self._op("add", self._op("log", total), largest)
        return [y, statistics][: max(1, len(self.i.shape.tuple_shapes or ()) - 1)]

    def derivative(self) -> list[Instruction]:
        statistics, dy, y = self.i.operands[3], *(self._heads_first(o) for o in self.i.operands[4:6])
        scores = self._scores()
        weights = self._op("exponential", self._op("subtract", scores, self._spread(statistics, scores)))
        dweights = self._product(dy, self.v, 3, 3, F32)
        each = self._reduced(self._op("multiply", convert(dy, F32), convert(y, F32)), "add", (3,))
        dscores = self._op("multiply", weights, self._op("subtract", dweights, self._spread(each, dweights)))
        scaled = convert(self._op("multiply", dscores, splat(self.c, dscores.shape, self.given.scale)), self.t)
        dq = self._product(scaled, self.k, 3, 2, self.t)
        dk = self._gathered(self._product(scaled, self.q, 2, 2, F32))
        dv = self._gathered(self._product(convert(weights, self.t), dy, 2, 2, F32))
        return [dq, dk, dv, *self._dbias(dscores)]

    def _dbias(self, dscores: Instruction) -> list[Instruction]:
        results = self.i.shape.tuple_shapes or ()
        if self.bias is None or len(results) < 4 or results[3].rank != 4:
            return []
        dims = self.bias.shape.dims
        summed = tuple([d for d, n in enumerate(dims) if n == 1 != dscores.shape.dims[d]])
        return [reshape(self._reduced(dscores, "add", summed) if summed else dscores, dims)]

    # -- pieces ------------------------------------------------------------------------------------------------------
    def _scores(self) -> Instruction:
        """Scaled products of queries and keys, with the bias, where a query may see a key."""
        scores = self._product(self.q, self.k, 3, 3, F32)
        scores = self._op("multiply", scores, splat(self.c, scores.shape, self.given.scale))
        if self.bias is not None:
            kept = [d for d, n in enumerate(self.bias.shape.dims) if n != 1]
            bias = convert(reshape(self.bias, [self.bias.shape.dims[d] for d in kept]), F32)
            scores = self._op("add", scores, self._broadcast(bias, scores, kept))
        if not self.given.causal:
            return scores
        of = array(S32, scores.shape.dims)
        row, key = (self.c.add("iota", (), of, like=self.i, iota_dimension=d) for d in (2, 3))
        return self.c.add(
            "select", [row.ge(key), scores, splat(self.c, scores.shape, float("-inf"))], scores.shape, like=self.i
        )

    def _heads_first(self, x: Instruction) -> Instruction:
        return x if self.given.heads_first else transpose(x, _HEADS_FIRST)

    def _repeated(self, x: Instruction) -> Instruction:
        """Keys or values for every head of the queries."""
        if self.group == 1:
            return x
        b, heads, length, size = x.shape.dims
        of = array(x.shape.element_type, (b, heads, self.group, length, size))
        wide = self.c.add("broadcast", [x], of, like=self.i, dimensions=(0, 1, 3, 4))
        return reshape(wide, (b, heads * self.group, length, size))

    def _gathered(self, x: Instruction) -> Instruction:
        """The sums over the heads that share keys and values."""
        if self.group == 1:
            return x
        b, heads, length, size = x.shape.dims
        return self._reduced(reshape(x, (b, heads // self.group, self.group, length, size)), "add", (2,))

    def _product(self, x: Instruction, y: Instruction, a: int, b: int, t: ElementType) -> Instruction:
        """A matrix product a batch and head, summed over dimension `a` of `x` and `b` of `y`."""
        left, right = (o.shape.dims[5 - d] for o, d in ((x, a), (y, b)))
        of = array(t, (*x.shape.dims[:2], left, right))
        both: dict[str, Any] = {"lhs_batch_dims": (0, 1), "rhs_batch_dims": (0, 1)}
        both |= {"lhs_contracting_dims": (a,), "rhs_contracting_dims": (b,)}
        return self.c.add("dot", [x, y], of, like=self.i, **both)

    def _reduced(self, x: Instruction, opcode: str, dims: Sequence[int]) -> Instruction:
        assert self.c.module is not None
        start = scalar(self.c, F32, float("-inf") if opcode == "maximum" else 0)
        of = array(F32, [n for d, n in enumerate(x.shape.dims) if d not in dims])
        to_apply = applied(self.c.module, opcode, F32)
        return self.c.add("reduce", [x, start], of, like=self.i, dimensions=tuple(dims), to_apply=to_apply)

    def _spread(self, x: Instruction, like: Instruction) -> Instruction:
        """A number a row for every element of the row."""
        return self._broadcast(x, like, (0, 1, 2))

    def _broadcast(self, x: Instruction, like: Instruction, dims: Sequence[int]) -> Instruction:
        return self.c.add("broadcast", [x], array(F32, like.shape.dims), like=self.i, dimensions=tuple(dims))

    def _op(self, opcode: str, *operands: Instruction) -> Instruction:
        return self.c.add(opcode, operands, operands[0].shape, like=self.i)
