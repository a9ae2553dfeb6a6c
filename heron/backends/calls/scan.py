"""Scans in one pass: flags are cleared, then a kernel of our own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.analysis.fusion.scan_plan import single_pass
from heron.errors import HeronError
from heron.hlo.calls.scan import body_of
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """Raises GEN017 on a machine other than a GPU, or for a call that is no scan of long rows."""
    from heron.codegen.emitters import control_words
    from heron.codegen.emitters.scan import gpu_single_pass

    body, target = body_of(i), lowering.target
    plan, why = single_pass(body.root)
    if plan is None or target.kind != "gpu":
        raise HeronError(
            "GEN017", f"no kernel computes the scan '{i.name}'", where=str(i), why=why or "the target is not a GPU"
        )
    places = [lowering.slice(i, (n,)) for n in range(len(i.shape.tuple_shapes or ()))]
    flags = plan.flags
    thunks = lowering.run(
        i,
        ("clear", flags),
        lambda name: [control_words.emit_clear(flags, "scan", f"{name}_clear", target)],
        (places[-2],),
    )
    return thunks + lowering.run(
        i,
        ("scan", fingerprint(body), tuple(o.shape for o in i.operands)),
        lambda name: [gpu_single_pass.emit(body, plan, name, target)],
        (*(lowering.slice(o) for o in i.operands), *places),
    )
