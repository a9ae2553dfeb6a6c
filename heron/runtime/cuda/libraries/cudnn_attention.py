"""cuDNN's attention as a graph: two products with a softmax between them, of which the library makes one kernel.

Source: https://docs.nvidia.com/deeplearning/cudnn (graph API, fused flash attention forward).
"""

from __future__ import annotations

from ctypes import c_int, c_int64, c_void_p
from typing import ClassVar

from heron.hlo.ir.types import F32, PRED, S32, ElementType
from heron.records import dataclass
from heron.runtime.cuda.libraries.cudnn_graph import DATA_TYPE, DATA_TYPES, DESCRIPTOR, INT64, Graph, Graphed, row_major

#: cudnnBackendDescriptorType_t
_POINTWISE, _POINTWISE_OP, _MATMUL, _MATMUL_OP, _REDUCTION, _REDUCTION_OP = 0, 13, 18, 19, 21, 22
#: cudnnBackendAttributeType_t
_POINTWISE_MODE, _REDUCTION_MODE = 14, 18
#: cudnnPointwiseMode_t
ADD, MUL, DIV, SUB, EXP, LOG, NOT_BELOW, INDEX, SELECT = 0, 1, 6, 9, 13, 15, 303, 501, 601
#: cudnnReduceTensorOp_t
_SUM, _MAXIMUM = 0, 3
#: cudnnBackendAttributeName_t
_MODE, _PRECISION, _AXIS = 0, 1, 9
_PW_DESC, _PW_X, _PW_B, _PW_Y, _PW_T = 750, 751, 752, 753, 758
_MM_PRECISION, _MM_A, _MM_B, _MM_C, _MM_DESC = 1500, 1520, 1521, 1522, 1523
_R_MODE, _R_PRECISION, _R_X, _R_Y, _R_DESC = 1600, 1601, 1610, 1611, 1612


@dataclass(frozen=True)
class Attention(Graphed):
    """Arrays: q, k, v, the bias if there is one, the output, the statistics if they are asked for, workspace.

    ``heads_first``: q, k and v are [batch, heads, sequence, head], else [batch, sequence, heads, head];
    ``out_heads_first``: the same of the output.
    """

    routine: ClassVar[str] = "attention"

    scale: float
    heads_first: bool = True
    out_heads_first: bool = True
    causal: bool = False
    bias: bool = False
    statistics: bool = False

    def add_to(self, g: Graph) -> None:
        q, k, v = (self._seen(g, n, self.heads_first, turned=n == 1) for n in range(3))
        out = 3 + self.bias
        shape = _heads_first(self.arrays[0].dims, self.heads_first)
        keys = _heads_first(self.arrays[1].dims, self.heads_first)[2]
        square, column = (*shape[:3], keys), (*shape[:3], 1)
        scores = g.between(F32, square)
        _matmul(g, q, k, scores)
        scores = _pointwise(g, MUL, square, scores, g.number(self.scale))
        if self.bias:
            scores = _pointwise(g, ADD, square, scores, g.array(3, self.arrays[3].dims))
        if self.causal:
            row, key = (_pointwise(g, INDEX, square, scores, axis=axis, of=S32) for axis in (2, 3))
            seen = _pointwise(g, NOT_BELOW, square, row, key, of=PRED)
            scores = _pointwise(g, SELECT, square, scores, g.number(float("-inf")), seen)
        largest = _reduced(g, _MAXIMUM, scores, column)
        weights = _pointwise(g, EXP, square, _pointwise(g, SUB, square, scores, largest))
        total = _reduced(g, _SUM, weights, column)
        if self.statistics:
            logarithm = _pointwise(g, LOG, column, total)
            _pointwise(g, ADD, column, logarithm, largest, out=g.array(out + 1, column))
        weights = _pointwise(g, DIV, square, weights, total, of=self.arrays[0].element_type)
        _matmul(g, weights, v, self._seen(g, out, self.out_heads_first))

    def _seen(self, g: Graph, n: int, heads_first: bool, turned: bool = False) -> c_void_p:
        """An array as [batch, heads, sequence, head], or with the last two turned round, wherever it lies."""
        dims = self.arrays[n].dims
        sizes, steps = _heads_first(dims, heads_first), _heads_first(row_major(dims), heads_first)
        if turned:
            sizes, steps = (*sizes[:2], sizes[3], sizes[2]), (*steps[:2], steps[3], steps[2])
        return g.array(n, sizes, steps)


def _heads_first(x: tuple[int, ...], is_so: bool) -> tuple[int, ...]:
    return x if is_so else (x[0], x[2], x[1], x[3])


def _matmul(g: Graph, a: c_void_p, b: c_void_p, c: c_void_p) -> None:
    how = g.make(_MATMUL, (_MM_PRECISION, DATA_TYPE, c_int(DATA_TYPES[F32])))
    given = (_MM_A, a), (_MM_B, b), (_MM_C, c), (_MM_DESC, how)
    g.operation(_MATMUL_OP, *((attribute, DESCRIPTOR, value) for attribute, value in given))


def _reduced(g: Graph, mode: int, x: c_void_p, dims: tuple[int, ...]) -> c_void_p:
    how = g.make(_REDUCTION, (_R_MODE, _REDUCTION_MODE, c_int(mode)), (_R_PRECISION, DATA_TYPE, c_int(DATA_TYPES[F32])))
    y = g.between(F32, dims)
    given = (_R_X, x), (_R_Y, y), (_R_DESC, how)
    g.operation(_REDUCTION_OP, *((attribute, DESCRIPTOR, value) for attribute, value in given))
    return y


def _pointwise(
    g: Graph,
    mode: int,
    dims: tuple[int, ...],
    x: c_void_p,
    b: c_void_p | None = None,
    t: c_void_p | None = None,
    *,
    axis: int | None = None,
    of: ElementType = F32,
    out: c_void_p | None = None,
) -> c_void_p:
    """The result of an elementwise operation of up to three operands; ``of``: its type."""
    precision = of if mode in (INDEX, NOT_BELOW) else F32
    given = [(_MODE, _POINTWISE_MODE, c_int(mode)), (_PRECISION, DATA_TYPE, c_int(DATA_TYPES[precision]))]
    how = g.make(_POINTWISE, *given, *([(_AXIS, INT64, c_int64(axis))] if axis is not None else []))
    y = out or g.between(of, dims)
    operands = ((_PW_X, x), (_PW_B, b), (_PW_T, t), (_PW_Y, y))
    named = [(attribute, DESCRIPTOR, value) for attribute, value in operands if value is not None]
    g.operation(_POINTWISE_OP, (_PW_DESC, DESCRIPTOR, how), *named)
    return y
