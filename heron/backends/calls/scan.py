"""Scans in one pass: flags are cleared, then a kernel of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.analysis.fusion.scan_plan import single_pass
from heron.codegen.emitters import control_words
from heron.codegen.emitters.scan import gpu_single_pass
from heron.codegen.kernel import Kernel
from heron.errors import HeronError
from heron.hlo.calls.form import results_of
from heron.hlo.calls.scan import body_of
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """Raises GEN017 on a machine other than a GPU, or for a call that is no scan of long rows."""
    body, target = body_of(i), lowering.target
    plan, why = single_pass(body.root)
    if plan is None or not target.is_gpu:
        why = why or "the target is not a GPU"
        raise HeronError("GEN017", f"no kernel computes the scan '{i.name}'", where=str(i), why=why)
    scratch = [s.dims for s in results_of(i)[-2:]]
    if scratch != [(plan.flags,), (plan.results * plan.words,)]:
        why = f"it takes {plan.flags} flags and {plan.results * plan.words} words; its result is {i.shape}"
        raise HeronError("GEN017", f"the scan '{i.name}' lacks scratch memory", where=str(i), why=why)

    def clear(name: str) -> list[Kernel]:
        return [control_words.emit_clear(plan.flags, "scan", f"{name}_clear", target)]

    def scan(name: str) -> list[Kernel]:
        return [gpu_single_pass.emit(body, plan, name, target)]

    places = tuple(lowering.slice(i, (n,)) for n in range(len(results_of(i))))
    operands = tuple(lowering.slice(o) for o in i.operands)
    thunks = lowering.run(i, ("clear", plan.flags), clear, (places[-2],))
    key = ("scan", fingerprint(body), tuple(o.shape for o in i.operands))
    return thunks + lowering.run(i, key, scan, (*operands, *places))
