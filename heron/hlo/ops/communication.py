"""Tokens, barriers, and talking to the host or one other device."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, Trait, op

TRANSFER = {"channel_id": Attr(AttrKind.INT), "is_host_transfer": Attr(AttrKind.BOOL, False)}
EFFECT = {Trait.SIDE_EFFECT}


@op("after-all")
class AfterAll(Op):
    operands = ("tokens*",)


@op("add-dependency")
class AddDependency(Op):
    operands = ("operand", "token")
    traits = {Trait.BITCAST_LIKE}


@op("opt-barrier")
class OptBarrier(Op):
    operands = ("operand",)
    traits = {Trait.BITCAST_LIKE}


@op("domain")
class Domain(Op):
    operands = ("operand",)
    attributes = {"domain": Attr(AttrKind.RAW, required=True)}
    traits = {Trait.BITCAST_LIKE}


@op("infeed")
class Infeed(Op):
    operands = ("token",)
    attributes = {"infeed_config": Attr(AttrKind.STRING, "")}
    traits = EFFECT


@op("outfeed")
class Outfeed(Op):
    operands = ("operand", "token")
    attributes = {"outfeed_shape": Attr(AttrKind.SHAPE), "outfeed_config": Attr(AttrKind.STRING, "")}
    traits = EFFECT


@op("send")
class Send(Op):
    operands = ("operand", "token")
    attributes = TRANSFER
    traits = EFFECT


@op("send-done")
class SendDone(Op):
    operands = ("sent",)
    attributes = TRANSFER
    traits = EFFECT


@op("recv")
class Recv(Op):
    operands = ("token",)
    attributes = TRANSFER
    traits = EFFECT


@op("recv-done")
class RecvDone(Op):
    operands = ("received",)
    attributes = TRANSFER
    traits = EFFECT
