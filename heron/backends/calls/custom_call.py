"""Custom calls. Its declaration (`heron.hlo.calls`) says who computes one, the file of its family how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from heron.backends.calls import by_evaluator, ffi
from heron.errors import HeronError
from heron.hlo.calls.declaration import EVALUATOR, Call
from heron.hlo.calls.declared import CALLS, declaration
from heron.hlo.ir.instruction import Instruction
from heron.later import Later
from heron.runtime.host import ffi as handlers
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

#: the lowering of each family of calls
FAMILIES: Mapping[str, Callable[[Lowering, Instruction], list[Thunk]]] = Later(
    {
        "attention": "heron.backends.calls.attention:lower",
        "convolution": "heron.backends.calls.convolution:lower",
        "gemm": "heron.backends.calls.gemm:lower",
        "lapack": "heron.backends.calls.lapack:lower",
        "norm": "heron.backends.calls.norm:lower",
        "python": "heron.backends.calls.python:lower",
        "radix_sort": "heron.backends.calls.radix_sort:lower",
        "scan": "heron.backends.calls.scan:lower",
    }
)


def custom_call(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The thunks of a call of a library, of a handler that the user registered, or of a Python function.

    Raises GEN011 for a call that nothing computes on the target, HLO172 for arrays that do not fit it.
    """
    call = declaration(i.custom_call_target)
    who = call.computed_by(lowering.target.kind) if call is not None else ""
    # arrays of a call that takes any order lie as suits the program: a handler of its name would read and write others
    may_be_handled = call is None or not who or who == EVALUATOR and not call.any_order
    if may_be_handled and (address := handlers.find(i.custom_call_target)) is not None:
        return ffi.lower(lowering, i, address)
    if call is None or not who:
        raise _unsupported(i, call, lowering.target.kind)
    call.need_fit(i)
    rule = by_evaluator.lower if who == EVALUATOR else FAMILIES[call.family or call.name]
    return rule(lowering, i)


def _unsupported(i: Instruction, call: Call | None, kind: str) -> HeronError:
    why, hint = (call.refusal, call.hint) if call is not None else ("", "")
    hint = hint or "known: " + ", ".join(c.name for c in CALLS if c.computed_by(kind)) + "; others need a handler"
    what = f"unsupported custom call target '{i.custom_call_target}'"
    return HeronError("GEN011", what, where=str(i), why=why or None, hint=hint)
