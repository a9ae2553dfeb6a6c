"""scan: a loop over one dimension, carrying values along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.op import Attr, AttrKind, Op, op, reject
from heron.hlo.ops.rules import attr, given
from heron.hlo.shape import Shape

if TYPE_CHECKING:
    from heron.hlo.instruction import Instruction


@op("scan")
class Scan(Op):
    """The scanned arrays, then `num_carries` initial carries. Parsed and printed, not evaluated."""

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
