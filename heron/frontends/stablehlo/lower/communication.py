"""Tokens, and talking to the host or one other device."""

from __future__ import annotations

from typing import Any

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lower.calls import laid_out
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar, token, tuple_
from heron.hlo.ir.types import U32


@rule("create_token", "after_all")
def _after_all(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("after-all", operands)


def _transfer(op: Operation) -> dict[str, Any]:
    handle = op.fields("channel_handle").get("handle", 1)
    if not isinstance(handle, int):
        op.wrong("channel_handle", "an integer for handle")
    attrs: dict[str, Any] = {"channel_id": handle}
    if op.flag("is_host_transfer"):
        attrs["is_host_transfer"] = True
    if op.find("source_target_pairs") is not None:  # HLO has no attribute for them
        pairs = "{" + ",".join(f"{{{','.join(map(str, row))}}}" for row in op.table("source_target_pairs")) + "}"
        frontend = dict(op.fields("mhlo.frontend_attributes"))
        op.attrs["mhlo.frontend_attributes"] = {**frontend, "_xla_send_recv_source_target_pairs": pairs}
    return attrs


@rule("send")
def _send(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """All operands but the last, the token, are data."""
    attrs = _transfer(op)
    sent = b.add("send", (b.packed(operands[:-1]), operands[-1]), **attrs)
    return b.add("send-done", (sent,), **attrs)


@rule("recv")
def _recv(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    attrs, data = _transfer(op), op.types[:-1]
    shape = data[0] if len(data) == 1 else tuple_(data)
    received = b.add("recv", operands, tuple_((shape, scalar(U32), token())), **attrs)
    received.op.shape(received, *[o.shape for o in operands])
    value, after = b.parts(b.add("recv-done", (received,), **attrs))
    return [*b.unpacked(value, len(data)), after]


@rule("infeed")
def _infeed(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    shape = tuple_((tuple_(laid_out(op, "layout", list(op.types[:-1]))), token()))
    i = b.checked("infeed", operands, shape, infeed_config=op.word("infeed_config", default=""))
    value, after = b.parts(i)
    return [*b.parts(value), after]


@rule("outfeed")
def _outfeed(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    data = b.tuple(operands[:-1])
    config = op.word("outfeed_config", default="")
    return b.add("outfeed", (data, operands[-1]), outfeed_shape=data.shape, outfeed_config=config)
