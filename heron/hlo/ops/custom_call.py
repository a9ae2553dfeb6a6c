"""custom-call: a call into a library, named by `custom_call_target`."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op


@op("custom-call")
class CustomCall(Op):
    operands = ("operands*",)
    attributes = {
        "window": Attr(AttrKind.WINDOW, ()),
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
