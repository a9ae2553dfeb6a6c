"""scan: a loop over one dimension, carrying values along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.op import Attr, AttrKind, Op, op, reject
from heron.hlo.ops.rules import attr, given
from heron.hlo.shape import Shape

if TYPE_CHECKING:
    from heron.hlo.evaluator import Evaluator
    from heron.hlo.instruction import Instruction


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
        carries = attr(i, "num_carries")
        attr(i, "dimensions")
        attr(i, "to_apply")
        if not 0 <= carries <= len(operands):
            reject(i, f"num_carries={carries} is more than the operands", f"{len(operands)} given")
        return given(i)

    def evaluate(self, ev: Evaluator, i: Instruction, *operands: Any) -> Any:
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
