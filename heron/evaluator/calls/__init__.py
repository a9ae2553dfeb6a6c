"""Custom calls the evaluator knows: one module a library, each registering its functions under their targets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.evaluator.calls import (  # noqa: F401  (all fill the table of targets)
    attention,
    convolution,
    gemm,
    helpers,
    jax_cuda,
    lapack,
    norm,
    radix_sort,
    resharding,
    scan,
    sparse,
    spectral,
    table,
    triangular,
    tridiagonal,
)
from heron.hlo.calls.declared import declaration

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.shape import Shape


def knows(target: str) -> bool:
    """Whether the evaluator computes such a call."""
    return table.find(target) is not None


def call_library(ev: Evaluator, i: Instruction, operands: Sequence[Any]) -> Any:
    """The value of a custom call. Raises EVAL001 for an unknown target, EVAL010 for operands that do not fit it."""
    function = table.find(i.custom_call_target)
    if function is None:
        raise HeronError(
            "EVAL001",
            f"the evaluator does not know the custom call '{i.custom_call_target}'",
            hint="it knows " + ", ".join(table.known()),
        )
    call = declaration(i.custom_call_target)
    if call is not None and (why := call.misfit(i)):
        raise _no_such_call(i, why)
    try:
        value = function(ev, i, *operands)
    except HeronError:
        raise
    except Exception as error:  # LAPACK's wrappers have exceptions of their own
        raise _no_such_call(i, str(error)[:200]) from None
    _need_stated(i, value, i.shape)
    return value


def _need_stated(i: Instruction, value: Any, stated: Shape) -> None:
    """Raises EVAL010 unless a call, which may have no declared form, gave what the program states."""
    if stated.tuple_shapes is not None:
        if not isinstance(value, (tuple, list)) or len(value) != len(stated.tuple_shapes):
            raise _no_such_call(i, f"it gives another tuple than {stated}")
        for part, shape in zip(value, stated.tuple_shapes, strict=True):
            _need_stated(i, part, shape)
    elif stated.is_array and not any(stated.dynamic) and getattr(value, "shape", ()) != stated.dims:
        raise _no_such_call(i, f"it gives {list(getattr(value, 'shape', ()))} for {stated}")
    elif stated.is_array and (dtype := np.asarray(value).dtype) != stated.element_type.dtype:
        raise _no_such_call(i, f"it gives elements of {dtype} for {stated}")


def _no_such_call(i: Instruction, why: str) -> HeronError:
    return HeronError(
        "EVAL010",
        f"'{i.custom_call_target}' does not compute {i.shape} from its operands",
        where=str(i),
        why=why,
        hint="operands, options and result have to be those of the routine",
    )
