"""Asynchronous work: chains of start, update and done; what they wrap; copies, sends and receives in two halves."""

from __future__ import annotations

from collections.abc import Iterator

from heron.hlo.facts import continues_async, done_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.verifier.calls import MAIN
from heron.hlo.verifier.channels import TRANSFERS
from heron.hlo.verifier.rules import Problem, rule

#: the frontend attribute of an async-start whose ops begin together
GROUP = "_collectives_group"
#: what may use the first half of a piece of work, which it must be used by once
USED_BY: dict[str, tuple[str, ...]] = {start: (done,) for start, done in done_of().items()}
USED_BY["async-start"] = USED_BY["async-update"] = ("async-update", "async-done")
for _transfer in TRANSFERS:
    USED_BY[_transfer] += ("tuple",)
#: what the second half may be given
TAKES: dict[str, tuple[str, ...]] = {done: (start,) for start, done in done_of().items()}
TAKES["async-update"] = TAKES["async-done"] = ("async-start", "async-update")
for _transfer in TRANSFERS:
    TAKES[f"{_transfer}-done"] += ("get-tuple-element",)


@rule("HLO130", on=USED_BY)
def started_work_is_finished_once(i: Instruction) -> Iterator[Problem]:
    """A start has one user, which continues or finishes it; sends and receives may travel in tuples.

    A send or receive that is the root of an asynchronous computation is finished by that one's done.
    """
    allowed = USED_BY[i.opcode]
    if i.opcode in TRANSFERS and i.is_root and i.parent is not None and is_async(i.parent):
        return
    if len(i.users) != 1:
        why = f"it has {len(i.users)} users, one of {' or '.join(allowed)} is needed"
        yield Problem("HLO130", f"'{i.name}' ({i.opcode}) must have one user", i, why=why)
        return
    (user,) = i.users
    if user.opcode not in allowed:
        why = f"'{user.name}' is a {user.opcode}; {' or '.join(allowed)} is needed"
        yield Problem("HLO130", f"'{i.name}' ({i.opcode}) has a user other than its done", i, why=why)


@rule("HLO131", on=TAKES)
def finished_work_was_started(i: Instruction) -> Iterator[Problem]:
    """The operand of an update or done is its start."""
    allowed = TAKES[i.opcode]
    for operand in i.operands:
        if operand.opcode not in allowed:
            why = f"'{operand.name}' is a {operand.opcode}; {' or '.join(allowed)} is needed"
            yield Problem("HLO131", f"the operand of '{i.name}' ({i.opcode}) is not the matching start", i, why=why)


@rule("HLO132", on=USED_BY["async-start"])
def chains_keep_their_computation(i: Instruction) -> Iterator[Problem]:
    """Update and done name the computation and the thread of their start, if they name any."""
    start = _start(i)
    if start is None:
        return  # HLO131
    calls = i.attrs.get("calls")
    if calls is not None and calls is not start.calls:
        why = f"'{i.name}' calls '{calls.name}', '{start.name}' calls '{start.calls.name}'"
        yield Problem("HLO132", f"'{i.name}' continues with another computation than was started", i, why=why)
    thread, first = i.attrs.get("async_execution_thread"), start.attrs.get("async_execution_thread", MAIN)
    if thread is not None and thread != first:
        why = f"'{i.name}' is on '{thread}', '{start.name}' on '{first}'"
        yield Problem("HLO132", f"'{i.name}' continues on another thread than was started", i, why=why)


@rule("HLO133", on=("async-start",))
def started_work_runs_on_its_thread(i: Instruction) -> Iterator[Problem]:
    """The computation of an async-start runs on the thread that names."""
    thread, body = i.attrs.get("async_execution_thread", MAIN), i.calls
    own = body.extras.get("execution_thread", thread)
    if own != thread:
        why = f"'{i.name}' says '{thread}', the computation '{own}'"
        yield Problem("HLO133", f"'{body.name}' runs on another thread than '{i.name}' starts", i, why=why)


@rule("HLO134", on=("async-start",))
def started_work_is_one_op(i: Instruction) -> Iterator[Problem]:
    """The computation of an async-start is a single op on its parameters.

    Groups of sends and receives, groups of collectives (frontend attribute _collectives_group) and barriers, which only
    pass their parameters on, may have more.
    """
    body = i.calls
    inner = [k for k in body._instructions if k is not body.root and k.opcode != "parameter"]
    if not inner or GROUP in i.extras.get("frontend_attributes", {}):
        return
    opcodes = {k.opcode for k in inner}
    if opcodes <= {"get-tuple-element"} or opcodes | {body.root.opcode} <= TRANSFERS | {"tuple"}:
        return
    why = f"it also has '{inner[0].name}' ({inner[0].opcode})"
    hint = "put the instructions into a computation of their own and call that"
    yield Problem("HLO134", f"'{body.name}', which '{i.name}' starts, must be one op", i, why=why, hint=hint)


@rule("HLO135", on=("async-start",))
def started_work_starts_no_other(i: Instruction) -> Iterator[Problem]:
    """The computation of an async-start starts no asynchronous work itself."""
    body = i.calls
    for inner in body._instructions:
        if inner.has(Trait.ASYNC):
            yield Problem("HLO135", f"'{body.name}' runs asynchronously and holds '{inner.name}' ({inner.opcode})", i)


def is_async(c: Computation) -> bool:
    """Whether an async-start runs `c`."""
    module = c.module
    return module is not None and any(i.opcode == "async-start" and c in i.called for i in module.instructions())


def _start(i: Instruction) -> Instruction | None:
    """The async-start a chain begins with."""
    while continues_async(i) and i.operands:
        i = i.operands[0]
    return i if i.opcode == "async-start" else None
