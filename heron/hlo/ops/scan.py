"""scan: a loop over one dimension, carrying values along."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op


@op("scan")
class Scan(Op):
    """The scanned arrays, then `num_carries` initial carries."""

    operands = ("operands*",)
    attributes = {
        "dimensions": Attr(AttrKind.INTS, required=True),
        "num_carries": Attr(AttrKind.INT, required=True),
        "is_reverse": Attr(AttrKind.BOOL, False),
        "is_associative": Attr(AttrKind.BOOL, False, shown=True),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }
