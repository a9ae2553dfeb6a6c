"""Ops that run other computations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import PRED_SCALAR, Shape, scalar
from heron.hlo.ir.types import PRED, S32
from heron.hlo.meaning import batched
from heron.hlo.ops.rules import array, attr, need_arrays, need_signature

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

FUSION_KINDS = ("kLoop", "kInput", "kOutput", "kCustom")


@op("call")
class Call(Op):
    """Runs a computation on the operands.

    Shape: the computation's result.
    """

    operands = ("operands*",)
    attributes = {
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
        "is_composite": Attr(AttrKind.BOOL, False),
    }
    traits = {Trait.CONTROL_FLOW, Trait.CALL}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        callee = attr(i, "to_apply")
        need_signature(i, "to_apply", callee, operands)
        return callee.root.shape

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        return ev.call(i.to_apply, *operands)


@op("while")
class While(Op):
    """``value = init; while condition(value): value = body(value)``.

    Shape: the operand's.
    """

    operands = ("init",)
    attributes = {
        "condition": Attr(AttrKind.COMPUTATION, required=True),
        "body": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {Trait.CONTROL_FLOW}

    def shape(self, i: Instruction, init: Shape) -> Shape:
        need_signature(i, "condition", attr(i, "condition"), (init,), PRED_SCALAR)
        need_signature(i, "body", attr(i, "body"), (init,), init)
        return init

    def evaluate(self, ev: Evaluation, i: Instruction, value: Any) -> Any:
        condition, body = i.condition, i.body
        while ev.call(condition, value):
            value = ev.call(body, value)
        return value


@op("conditional")
class Conditional(Op):
    """Runs the branch the index names, the last one for an index out of range.

    A pred index chooses between ``(true, false)``; the text then says true_computation= and false_computation=.

    Shape: the branches' result, which must be the same.
    """

    operands = ("branch_index", "branch_operands*")
    attributes = {"branch_computations": Attr(AttrKind.COMPUTATIONS, required=True)}
    traits = {Trait.CONTROL_FLOW}

    def shape(self, i: Instruction, index: Shape, *operands: Shape) -> Shape:
        branches = attr(i, "branch_computations")
        if index.bare not in (PRED_SCALAR.bare, scalar(S32).bare):
            reject(i, "the branch index must be pred[] or s32[]", f"it is {index}")
        if not branches or (index.element_type is PRED and len(branches) != 2):
            reject(i, "needs two branches for a pred index, one or more otherwise", f"{len(branches)} given")
        if len(operands) != len(branches):
            reject(i, "needs one operand a branch", f"{len(operands)} for {len(branches)} branches")
        result = branches[0].root.shape
        for branch, operand in zip(branches, operands, strict=True):
            need_signature(i, "branch", branch, (operand,), result)
        return result

    def evaluate(self, ev: Evaluation, i: Instruction, index: np.ndarray, *operands: Any) -> Any:
        branches = i.branch_computations
        chosen = int(not index) if index.dtype == np.bool_ else int(index)
        if not 0 <= chosen < len(branches):
            chosen = len(branches) - 1
        return ev.call(branches[chosen], operands[chosen])


@op("map")
class Map(Op):
    """A scalar computation on each element.

    Shape: the operands' dimensions, with the computation's element type.
    """

    operands = ("operands*",)
    attributes = {
        "dimensions": Attr(AttrKind.INTS),
        "to_apply": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {Trait.APPLIES}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        if not operands:
            reject(i, "needs at least one operand")
        need_arrays(i, *operands)
        dims = operands[0].dims
        for n, s in enumerate(operands):
            if s.dims != dims:
                reject(i, f"operand {n} has other dimensions than operand 0", f"{s} and {operands[0]}")
        if i.attrs.get("dimensions") is not None and tuple(i.dimensions) != tuple(range(len(dims))):
            reject(i, "dimensions must be all of them, in order", f"{i.dimensions} for {operands[0]}")
        body = attr(i, "to_apply")
        need_signature(i, "to_apply", body, [scalar(s.element_type) for s in operands])
        if not body.root.shape.is_scalar:
            reject(i, "to_apply must return a scalar", f"it returns {body.root.shape}")
        return array(body.root.shape.element_type, dims)

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: np.ndarray) -> np.ndarray:
        return batched.apply(ev, i.to_apply, *operands)


@op("fusion")
class Fusion(Op):
    """A computation compiled as one kernel; to the evaluator, a call.

    Shape: the computation's result.
    """

    operands = ("operands*",)
    attributes = {
        "kind": Attr(AttrKind.ENUM, required=True, choices=FUSION_KINDS),
        "output_to_operand_aliasing": Attr(AttrKind.ALIASING, ()),
        "calls": Attr(AttrKind.COMPUTATION, required=True),
    }
    traits = {Trait.CALL, Trait.IN_PLACE}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        body = attr(i, "calls")
        if attr(i, "kind") not in FUSION_KINDS:
            reject(i, f"kind={i.kind} is none of {', '.join(FUSION_KINDS)}")
        need_signature(i, "calls", body, operands)
        return body.root.shape

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        return ev.call(i.calls, *operands)
