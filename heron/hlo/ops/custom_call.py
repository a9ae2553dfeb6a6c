"""custom-call: a call into a library, named by `custom_call_target`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import heron.hlo.evaluation.attention_calls
import heron.hlo.evaluation.conv_calls
import heron.hlo.evaluation.gemm_calls
import heron.hlo.evaluation.jax_cuda_calls
import heron.hlo.evaluation.norm_calls
import heron.hlo.evaluation.own_calls
import heron.hlo.evaluation.resharding
import heron.hlo.evaluation.solver_calls
import heron.hlo.evaluation.spectral
import heron.hlo.evaluation.tridiagonal  # noqa: F401  (all fill the table of targets)
from heron.errors import HeronError
from heron.hlo.evaluation import libraries
from heron.hlo.ir.op import Attr, AttrKind, Op, op, reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ops.rules import attr, given

if TYPE_CHECKING:
    from heron.hlo.evaluator import Evaluator
    from heron.hlo.ir.instruction import Instruction


@op("custom-call")
class CustomCall(Op):
    """The stated result of a function outside the program. The evaluator knows those `libraries` lists.

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

    def evaluate(self, ev: Evaluator, i: Instruction, *operands: Any) -> Any:
        function = libraries.find(i.custom_call_target)
        if function is None:
            raise HeronError(
                "EVAL001",
                f"the evaluator does not know the custom call '{i.custom_call_target}'",
                hint="it knows " + ", ".join(libraries.known()),
            )
        try:
            value = function(ev, i, *operands)
        except HeronError:
            raise
        except Exception as error:  # LAPACK's wrappers have exceptions of their own
            raise _no_such_call(i, str(error)[:200]) from None
        _need_stated(i, value, i.shape)
        return value


def _need_stated(i: Instruction, value: Any, stated: Shape) -> None:
    """Raises EVAL010 unless a call, whose shapes nothing checks before, gave what the program states."""
    if stated.tuple_shapes is not None:
        if not isinstance(value, (tuple, list)) or len(value) != len(stated.tuple_shapes):
            raise _no_such_call(i, f"it gives another tuple than {stated}")
        for part, shape in zip(value, stated.tuple_shapes, strict=True):
            _need_stated(i, part, shape)
    elif stated.is_array and not any(stated.dynamic) and getattr(value, "shape", ()) != stated.dims:
        raise _no_such_call(i, f"it gives {list(getattr(value, 'shape', ()))} for {stated}")


def _no_such_call(i: Instruction, why: str) -> HeronError:
    return HeronError(
        "EVAL010",
        f"'{i.custom_call_target}' does not compute {i.shape} from its operands",
        where=str(i),
        why=why,
        hint="operands, options and result have to be those of the routine",
    )
