"""Sizes known only at run time (bounded dynamic dimensions)."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op

DIMENSIONS = {"dimensions": Attr(AttrKind.INTS, required=True)}


@op("get-dimension-size")
class GetDimensionSize(Op):
    operands = ("operand",)
    attributes = DIMENSIONS


@op("set-dimension-size")
class SetDimensionSize(Op):
    operands = ("operand", "size")
    attributes = DIMENSIONS


@op("dynamic-reshape")
class DynamicReshape(Op):
    operands = ("operand", "sizes*")
