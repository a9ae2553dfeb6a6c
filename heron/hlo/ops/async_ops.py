"""Asynchronous running of another computation.

XLA's text writes an async-start whose computation wraps a single op as ``OPCODE-start(...)`` with that op's
attributes (likewise ``-update`` and ``-done``).
"""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op

ATTRIBUTES = {
    "async_execution_thread": Attr(AttrKind.STRING, "main"),
    "calls": Attr(AttrKind.COMPUTATION),
}


@op("async-start")
class AsyncStart(Op):
    operands = ("operands*",)
    attributes = ATTRIBUTES


@op("async-update")
class AsyncUpdate(Op):
    operands = ("started",)
    attributes = ATTRIBUTES


@op("async-done")
class AsyncDone(Op):
    operands = ("started",)
    attributes = ATTRIBUTES
