"""scan: a loop over one dimension, carrying values along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ops.rules import array, attr, given, need_arrays, need_dim, need_signature

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


@op("scan")
class Scan(Op):
    """Runs `to_apply` on each slice of the scanned arrays along a dimension, in order (or in reverse).

    Operands: arrays, then `num_carries` initial carries. `to_apply` takes a slice of each array, the dimension dropped,
    and the carries, and returns a slice of each output, then the next carries. The value is the outputs, then the last
    carries. `is_associative` allows other orders; the evaluator always goes step by step.

    Shape: a tuple: as stated for the outputs, then the carries' shapes.
    """

    operands = ("operands*",)
    attributes = {
        "dimensions": Attr(AttrKind.INTS, required=True),
        "num_carries": Attr(AttrKind.INT, required=True),
        "is_reverse": Attr(AttrKind.BOOL, False),
        "is_associative": Attr(AttrKind.BOOL, False, shown=True),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        carries: int = attr(i, "num_carries")
        dims: tuple[int, ...] = attr(i, "dimensions")
        body: Computation = attr(i, "to_apply")
        if not 0 <= carries <= len(operands):
            reject(i, f"num_carries={carries} is more than the operands", f"{len(operands)} given")
        if len(dims) != 1:
            reject(i, "dimensions must name one dimension", f"{len(dims)} given")
        split = len(operands) - carries
        scanned, initial = operands[:split], operands[split:]
        need_arrays(i, *scanned)
        slices = [_slice(i, dims[0], s) for s in scanned]
        need_signature(i, "to_apply", body, [*slices, *initial])
        to = given(i)
        gives = body.root.shape.tuple_shapes or (body.root.shape,)
        parts = to.tuple_shapes or (to,)
        if len(gives) != len(parts) or len(gives) < carries:
            reject(i, "needs one result for each of to_apply", f"{len(parts)} and {len(gives)}")
        made = len(parts) - carries
        sizes = {s.dims[dims[0]] for s in scanned}
        for n, (part, give) in enumerate(zip(parts, gives, strict=True)):
            want = initial[n - made] if n >= made else _slice(i, dims[0], part)
            if give.bare is not want.bare:
                reject(i, f"to_apply returns {give} as result {n}", f"{want} is needed for {part}")
            if n >= made and part.bare is not want.bare:
                reject(i, f"result {n} is a carry", f"{part}, it begins as {want}")
        sizes |= {s.dims[dims[0]] for s in parts[:made]}
        if len(sizes) > 1:
            reject(i, "all that is scanned has one size along the dimension", f"sizes {sorted(sizes)}")
        return to

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        (dim,) = i.dimensions
        arrays, carries = operands[: len(operands) - i.num_carries], operands[len(operands) - i.num_carries :]
        parts = i.shape.tuple_shapes or (i.shape,)
        count = len(parts) - i.num_carries
        outputs = [np.empty(s.dims, s.element_type.dtype) for s in parts[:count]]
        steps = range(arrays[0].shape[dim]) if arrays else range(outputs[0].shape[dim] if outputs else 0)
        at: tuple[Any, ...] = (slice(None),) * dim
        for n in reversed(steps) if i.is_reverse else steps:
            value = ev.call(i.to_apply, *(a[(*at, n)] for a in arrays), *carries)
            results = value if i.to_apply.root.shape.is_tuple else (value,)
            for output, slice_ in zip(outputs, results, strict=False):
                output[(*at, n)] = slice_
            carries = results[count:]
        return (*outputs, *carries) if i.shape.is_tuple else (*outputs, *carries)[0]


def _slice(i: Instruction, d: int, s: Shape) -> Shape:
    """The shape without dimension `d`, which must be there."""
    if not s.is_array:
        reject(i, "what is scanned must be arrays", f"it is {s}")
    need_dim(i, "dimensions", d, s.rank)
    return array(s.element_type, (*s.dims[:d], *s.dims[d + 1 :]))
