"""sort and topk."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op


@op("sort")
class Sort(Op):
    operands = ("operands*",)
    attributes = {
        "dimensions": Attr(AttrKind.INTS, required=True),
        "is_stable": Attr(AttrKind.BOOL, False),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }


@op("topk")
class TopK(Op):
    operands = ("operand",)
    attributes = {
        "k": Attr(AttrKind.INT, required=True),
        "largest": Attr(AttrKind.BOOL, required=True),
    }
