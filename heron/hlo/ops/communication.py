"""Tokens, barriers, and talking to the host or one other device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape, scalar, token, tuple_
from heron.hlo.ir.types import U32
from heron.hlo.ops.rules import attr, given

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

TRANSFER = {"channel_id": Attr(AttrKind.INT), "is_host_transfer": Attr(AttrKind.BOOL, False)}
EFFECT = {Trait.SIDE_EFFECT}


def need_token(i: Instruction, n: int, s: Shape) -> None:
    if not s.is_token:
        reject(i, f"operand {n} must be a token", f"it is {s}")


@op("after-all")
class AfterAll(Op):
    """A token that comes when all its operands have come.

    Shape: token[].
    """

    operands = ("tokens*",)
    traits = {Trait.FREE}

    def shape(self, i: Instruction, *tokens: Shape) -> Shape:
        for n, s in enumerate(tokens):
            need_token(i, n, s)
        return token()

    def evaluate(self, ev: Evaluation, i: Instruction, *tokens: None) -> None:
        return None


class Identity(Op):
    """Gives its operand back."""

    operands = ("operand",)
    traits = {Trait.FORWARDS, Trait.FREE}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        return x

    def evaluate(self, ev: Evaluation, i: Instruction, x: Any) -> Any:
        return x


@op("add-dependency")
class AddDependency(Identity):
    """The operand, not before the token.

    Shape: the first operand's.
    """

    operands = ("operand", "token")

    def shape(self, i: Instruction, x: Shape, after: Shape) -> Shape:  # pyright: ignore[reportIncompatibleMethodOverride]
        need_token(i, 1, after)
        return x

    def evaluate(self, ev: Evaluation, i: Instruction, x: Any, after: None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return x


@op("opt-barrier")
class OptBarrier(Identity):
    """The operand; no optimisation looks or moves through.

    Shape: the operand's.
    """

    traits = {Trait.FORWARDS, Trait.FREE, Trait.ANY_ORDER}


@op("domain")
class Domain(Identity):
    """The operand, where one sharding domain ends and another begins.

    Shape: the operand's.
    """

    attributes = {"domain": Attr(AttrKind.RAW, required=True)}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        attr(i, "domain")
        return x


@op("infeed")
class Infeed(Op):
    """(data from the host, token).

    Shape: as stated: a tuple of the data's shape and token[].
    """

    operands = ("token",)
    attributes = {"infeed_config": Attr(AttrKind.STRING, "")}
    traits = {Trait.SIDE_EFFECT, Trait.HOST}

    def shape(self, i: Instruction, after: Shape) -> Shape:
        need_token(i, 0, after)
        to = given(i)
        if to.tuple_shapes is None or len(to.tuple_shapes) != 2 or not to.tuple_shapes[1].is_token:
            reject(i, "the result must be (data, token)", f"it is {to}")
        return to

    def evaluate(self, ev: Evaluation, i: Instruction, after: None) -> tuple[Any, None]:
        return ev.infeed(i.shape.at((0,))), None


@op("outfeed")
class Outfeed(Op):
    """Data to the host.

    Shape: token[].
    """

    operands = ("operand", "token")
    attributes = {"outfeed_shape": Attr(AttrKind.SHAPE), "outfeed_config": Attr(AttrKind.STRING, "")}
    traits = {Trait.SIDE_EFFECT, Trait.HOST}

    def shape(self, i: Instruction, x: Shape, after: Shape) -> Shape:
        need_token(i, 1, after)
        if i.outfeed_shape is not None and i.outfeed_shape.bare is not x.bare:
            reject(i, "outfeed_shape is not the operand's shape", f"{i.outfeed_shape} and {x}")
        return token()

    def evaluate(self, ev: Evaluation, i: Instruction, x: Any, after: None) -> None:
        ev.outfeed(x)


@op("send")
class Send(Op):
    """Begins to send data over a channel; the value is (data, context, token).

    Shape: a tuple: the operand's shape, u32[] and token[].
    """

    operands = ("operand", "token")
    attributes = TRANSFER
    traits = {Trait.SIDE_EFFECT, Trait.CHANNEL}
    done = "send-done"

    def shape(self, i: Instruction, x: Shape, after: Shape) -> Shape:
        need_token(i, 1, after)
        return tuple_((x, scalar(U32), token()))

    def evaluate(self, ev: Evaluation, i: Instruction, x: Any, after: None) -> tuple[Any, np.ndarray, None]:
        ev.send(i, x)
        return x, np.zeros((), np.uint32), None


@op("send-done")
class SendDone(Op):
    """The end of a send.

    Shape: token[].
    """

    operands = ("sent",)
    attributes = TRANSFER
    traits = {Trait.SIDE_EFFECT, Trait.FREE, Trait.CHANNEL}

    def shape(self, i: Instruction, sent: Shape) -> Shape:
        need_transfer(i, sent)
        return token()

    def evaluate(self, ev: Evaluation, i: Instruction, sent: Any) -> None:
        return None


@op("recv")
class Recv(Op):
    """Begins to receive data over a channel; the value is (data, context, token).

    Shape: as stated.
    """

    operands = ("token",)
    attributes = TRANSFER
    traits = {Trait.SIDE_EFFECT, Trait.CHANNEL}
    done = "recv-done"

    def shape(self, i: Instruction, after: Shape) -> Shape:
        need_token(i, 0, after)
        to = given(i)
        need_transfer(i, to)
        return to

    def evaluate(self, ev: Evaluation, i: Instruction, after: None) -> tuple[Any, np.ndarray, None]:
        return zeros(i.shape.at((0,))), ev.begin_receive(i), None


@op("recv-done")
class RecvDone(Op):
    """(data, token).

    Shape: a tuple: the first and the last element of the operand's.
    """

    operands = ("received",)
    attributes = TRANSFER
    traits = {Trait.SIDE_EFFECT, Trait.FREE, Trait.CHANNEL}

    def shape(self, i: Instruction, received: Shape) -> Shape:
        return tuple_((need_transfer(i, received), token()))

    def evaluate(self, ev: Evaluation, i: Instruction, received: Any) -> tuple[Any, None]:
        return ev.finish_receive(i, received[1], received[0]), None


def zeros(s: Shape) -> Any:
    """Zeros of that shape, tuples and tokens too."""
    if s.tuple_shapes is not None:
        return tuple(map(zeros, s.tuple_shapes))
    return np.zeros(s.dims, s.element_type.dtype) if s.is_array else None


def need_transfer(i: Instruction, s: Shape) -> Shape:
    """The data's shape in (data, context, token); rejects anything else."""
    parts = s.tuple_shapes
    if parts is None or len(parts) != 3 or parts[1].bare is not scalar(U32).bare or not parts[2].is_token:
        reject(i, "a transfer is (data, context, token)", f"it is {s}")
    return parts[0]
