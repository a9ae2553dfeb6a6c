"""Calls: fusions and their bodies, what calls alias, composites, threads."""

from __future__ import annotations

from collections.abc import Iterator

from heron.errors import HeronError
from heron.hlo.calls.declaration import what_misfits
from heron.hlo.calls.declared import declaration
from heron.hlo.facts import having, opcodes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.verifier.rules import Problem, rule

MAIN = "main"
#: ops whose outputs may live in operands
ALIASING = opcodes(lambda op: "output_to_operand_aliasing" in op.attributes)
#: ops that talk to the host or to one other device, or wait for it
TRANSFERS = having(Trait.HOST, Trait.CHANNEL)


# -- fusions ---------------------------------------------------------------------------------------------------------
@rule("HLO113")
def entries_are_not_fused(module: Module) -> Iterator[Problem]:
    """The entry is not the body of a fusion."""
    for i in module.instructions():
        if i.opcode == "fusion" and module.entry in i.called:
            yield Problem("HLO113", f"the entry '{module.entry.name}' is the body of a fusion", i)


@rule("HLO120")
def fused_computations_have_one_caller(module: Module) -> Iterator[Problem]:
    """A fusion's body belongs to that fusion alone."""
    callers: dict[Computation, Instruction] = {}
    fused = {i.calls for i in module.instructions() if i.opcode == "fusion"}
    if not fused:
        return
    for i in module.instructions():
        for c in i.called if i.attrs else ():
            if c not in fused:
                continue
            first = callers.setdefault(c, i)
            if first is not i:
                yield Problem("HLO120", f"'{c.name}' is called by '{first.name}' and by '{i.name}'", i)


@rule("HLO121", on=("fusion",))
def fused_roots_have_no_users(i: Instruction) -> Iterator[Problem]:
    """The root of a fusion's body has no users inside: it is the result."""
    root = i.calls.root
    if root.users:
        used = ", ".join(f"'{u.name}'" for u in list(root.users)[:3])
        yield Problem("HLO121", f"the root '{root.name}' of the fusion '{i.name}' is used by {used}", root)


@rule("HLO122", on=("fusion",))
def fused_instructions_are_used(i: Instruction) -> Iterator[Problem]:
    """Every instruction of a fusion's body, parameters too, is used or has a side effect."""
    body = i.calls
    for inner in body._instructions:
        if not inner.users and inner is not body.root and not inner.has_side_effect:
            hint = "drop the operand and the parameter" if inner.opcode == "parameter" else "run dce"
            yield Problem("HLO122", f"'{inner.name}' in the fusion '{i.name}' is not used", inner, hint=hint)


@rule("HLO123", on=("fusion",))
def fusions_keep_to_themselves(i: Instruction) -> Iterator[Problem]:
    """A fusion does not talk to the host or wait for other devices, unless it is a custom one."""
    if i.kind == "kCustom":
        return
    for inner in i.calls._instructions:
        if inner.opcode in TRANSFERS:
            why = "a kernel cannot wait for data from outside"
            yield Problem("HLO123", f"'{inner.name}' ({inner.opcode}) is part of the fusion '{i.name}'", inner, why=why)


# -- aliasing --------------------------------------------------------------------------------------------------------
@rule("HLO124", on=ALIASING)
def aliased_operands_exist(i: Instruction) -> Iterator[Problem]:
    """output_to_operand_aliasing names parts of the output and of operands that are there, each output once."""
    seen: set[tuple[int, ...]] = set()
    for output, number, index in i.attrs.get("output_to_operand_aliasing", ()):
        if _part(i.shape, output) is None:
            yield Problem("HLO124", f"'{i.name}' has no output {list(output)} to alias", i, why=f"it gives {i.shape}")
        if not 0 <= number < len(i.operands) or _part(i.operands[number].shape, index) is None:
            why = f"it has {len(i.operands)} operands"
            yield Problem("HLO124", f"'{i.name}' has no operand {number} with a part {list(index)}", i, why=why)
        if output in seen:
            yield Problem("HLO124", f"output {list(output)} of '{i.name}' is aliased twice", i)
        seen.add(output)


@rule("HLO125", on=ALIASING)
def aliased_operands_are_alike(i: Instruction) -> Iterator[Problem]:
    """An output that lives in an operand has its shape."""
    pairs = i.attrs.get("output_to_operand_aliasing", ())
    if not pairs or "xla_skip_custom_call_alias_shape_check" in i.extras.get("frontend_attributes", {}):
        return
    for output, number, index in pairs:
        source = _part(i.operands[number].shape, index) if 0 <= number < len(i.operands) else None
        to = _part(i.shape, output)
        if to is None or source is None:
            continue  # HLO124
        if not _same_value(to, source):
            what = f"output {list(output)} of '{i.name}' cannot live in operand {number}"
            yield Problem("HLO125", what, i, why=f"it is {to}, the operand's part {source}")


def _part(shape: Shape, index: tuple[int, ...]) -> Shape | None:
    try:
        return shape.at(tuple(index)) if all(n >= 0 for n in index) else None
    except IndexError:
        return None


def _same_value(a: Shape, b: Shape) -> bool:
    """Whether two shapes are the same but for layouts, which dimensions are dynamic, and who owns the memory."""
    a, b = a.content or a, b.content or b
    if a.tuple_shapes is not None and b.tuple_shapes is not None:
        return len(a.tuple_shapes) == len(b.tuple_shapes) and all(map(_same_value, a.tuple_shapes, b.tuple_shapes))
    return a.is_tuple == b.is_tuple and a.element_type is b.element_type and a.dims == b.dims


# -- custom calls and composites -------------------------------------------------------------------------------------
@rule("HLO126", on=("custom-call",))
def constrained_calls_have_layouts(i: Instruction) -> Iterator[Problem]:
    """A custom call that constrains its operands' layouts has a layout itself, and names one for each operand."""
    constraints = i.attrs.get("operand_layout_constraints")
    if constraints is None or i.custom_call_target == "LayoutConstraint":
        return
    for name, shape in [("the result", i.shape), *((f"operand {n}", s) for n, s in enumerate(constraints))]:
        if any(s.is_array and s.rank and s.layout is None for _, s in shape.leaves()):
            yield Problem("HLO126", f"'{i.name}' constrains layouts, but {name} has none", i, why=f"it is {shape}")


@rule("HLO172", on=("custom-call",))
def declared_calls_have_their_form(i: Instruction) -> Iterator[Problem]:
    """The operands and results of a custom call that heron knows are of the form that its declaration gives.

    A configuration that cannot be read, or says what heron does not know, breaks no rule: nothing is known of it.
    """
    call = declaration(i.attrs["custom_call_target"])
    if call is None:
        return
    try:
        why = call.misfit(i)
        form = call.form_of(i) if why else ""
    except HeronError as error:
        if error.code == "HLO172":
            yield Problem("HLO172", error.what, i, why=error.why)
        return
    if why:
        yield Problem("HLO172", what_misfits(i), i, why=why, hint=f"its form: {form}")


@rule("HLO127", on=("call",))
def composites_are_named(i: Instruction) -> Iterator[Problem]:
    """A composite has the frontend attribute composite.name; its attributes and version, if given, are sound."""
    if not i.attrs.get("is_composite"):
        return
    given = i.extras.get("frontend_attributes", {})
    if not given.get("composite.name"):
        hint = 'frontend_attributes={composite.name="..."}'
        yield Problem("HLO127", f"the composite '{i.name}' has no name", i, hint=hint)
    if given.get("composite.attributes") == "":
        yield Problem("HLO127", f"composite.attributes of '{i.name}' is empty", i, hint="leave it out, or write {}")
    version = given.get("composite.version")
    if version is not None and not (version.isascii() and version.isdigit()):
        yield Problem("HLO127", f"composite.version of '{i.name}' is not a number", i, why=f"it is '{version[:40]}'")


# -- threads ---------------------------------------------------------------------------------------------------------
@rule("HLO128")
def callees_run_on_their_callers_thread(module: Module) -> Iterator[Problem]:
    """A called computation runs on its caller's thread; only an async-start hands work to another."""
    threads = execution_threads(module)
    if all(thread == MAIN for thread in threads.values()):
        return
    for c in module.computations:
        for i in c._instructions:
            if i.has(Trait.ASYNC):
                continue
            for callee in i.called:
                if threads[callee] != threads[c]:
                    what = f"'{i.name}' calls '{callee.name}', which runs on another thread"
                    why = f"'{c.name}' runs on '{threads[c]}', '{callee.name}' on '{threads[callee]}'"
                    yield Problem("HLO128", what, i, why=why)


def execution_threads(module: Module) -> dict[Computation, str]:
    """The thread of each computation: as stated, else the one its async-start names."""
    threads = {c: c.extras.get("execution_thread", "") for c in module.computations}
    for i in module.instructions():
        if i.opcode == "async-start":
            c = i.calls
            threads[c] = threads[c] or i.attrs.get("async_execution_thread", MAIN)
    return {c: thread or MAIN for c, thread in threads.items()}
