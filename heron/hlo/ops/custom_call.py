"""custom-call: a call into a library, named by `custom_call_target`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ops.rules import attr, given

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction


@op("custom-call")
class CustomCall(Op):
    """The stated result of a function outside the program. The evaluator knows those of `heron.evaluator.calls`.

    Shape: as stated.
    """

    operands = ("operands*",)
    attributes = {
        "window": Attr(AttrKind.WINDOW),
        "dim_labels": Attr(AttrKind.DIM_LABELS),
        "feature_group_count": Attr(AttrKind.INT, 1),
        "batch_group_count": Attr(AttrKind.INT, 1),
        "operand_precision": Attr(AttrKind.WORDS),
        "padding_type": Attr(AttrKind.ENUM, choices=("PADDING_VALID", "PADDING_SAME")),
        "custom_call_target": Attr(AttrKind.STRING, required=True),
        "operand_layout_constraints": Attr(AttrKind.SHAPES),
        "custom_call_has_side_effect": Attr(AttrKind.BOOL, False),
        "literal": Attr(AttrKind.LITERAL),
        "output_to_operand_aliasing": Attr(AttrKind.ALIASING, ()),
        "schedule": Attr(
            AttrKind.ENUM, "SCHEDULE_NONE", choices=("SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST")
        ),
        "api_version": Attr(
            AttrKind.ENUM,
            "API_VERSION_ORIGINAL",
            choices=(
                "API_VERSION_ORIGINAL",
                "API_VERSION_STATUS_RETURNING",
                "API_VERSION_STATUS_RETURNING_UNIFIED",
                "API_VERSION_TYPED_FFI",
            ),
        ),
        "called_computations": Attr(AttrKind.COMPUTATIONS, ()),
    }
    traits = {Trait.LIBRARY}

    def shape(self, i: Instruction, *operands: Shape) -> Shape:
        attr(i, "custom_call_target")
        constraints = i.operand_layout_constraints
        if constraints is not None:
            if len(constraints) != len(operands):
                reject(
                    i,
                    "operand_layout_constraints needs one shape an operand",
                    f"{len(constraints)} for {len(operands)}",
                )
            for n, (c, s) in enumerate(zip(constraints, operands, strict=True)):
                if c.bare is not s.bare:
                    reject(i, f"operand_layout_constraints differ from operand {n}", f"{c} and {s}")
        return given(i)

    def evaluate(self, ev: Evaluation, i: Instruction, *operands: Any) -> Any:
        return ev.call_library(i, operands)
