"""A padded program as one whose parameters and results have fixed sizes too: what is compiled.

Sizes come in as further parameters and go out as further results, all ``s32[]``, in the order of `dynamic_places` of
the parameters and the result; what checks of sizes found comes after them. The callers' arrays are filled up and cut,
and the checks' errors raised, by `heron.runtime.dynamic_signature`.
"""

from __future__ import annotations

from heron.analysis.dynamic_sizes import Place, dynamic_places
from heron.hlo.calls import size_checks
from heron.hlo.calls.size_checks import SizeCheck
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import scalar
from heron.hlo.ir.types import S32
from heron.passes.dynamic.model.edges import PAD, SLICE
from heron.passes.dynamic.model.padded import number, static


def fix_interface(module: Module) -> list[SizeCheck]:
    """Give a padded program's entry parameters and results of fixed sizes, and its sizes as numbers.

    Gives the checks of sizes the program makes. Parameters and results that share memory still do.
    """
    entry = module.entry
    count = len(entry.parameters)
    for p in entry.parameters:
        sizes: dict[Place, Instruction] = {}
        for place in dynamic_places(p.shape):
            sizes[place] = entry.add_parameter(count, scalar(S32), f"{p.name}_size")
            count += 1
        if sizes:
            _take(p, (), sizes)
    given = [_size(entry.root, *place) for place in dynamic_places(entry.root.shape)]
    report, checks = _checked(entry)
    if given or report:
        is_tuple = entry.root.shape.is_tuple
        parts = _parts_of(entry.root) if is_tuple else [entry.root]
        entry.root = entry.add("tuple", [*map(_fixed, parts), *given, *report])
        if not is_tuple:
            _move_aliases(module)
    module.entry_layout = None
    for i in reversed(entry.post_order()):
        if not i.users and not i.is_root and i.opcode in ("tuple", "custom-call") and dynamic_places(i.shape):
            entry.remove(i)
    return checks


def _parts_of(x: Instruction) -> list[Instruction]:
    if x.opcode == "tuple":
        return list(x.operands)
    assert x.parent is not None
    return [x.parent.add("get-tuple-element", [x], index=n) for n in range(len(x.shape.tuple_shapes or ()))]


def _move_aliases(module: Module) -> None:
    """The one result is now the first part of a tuple."""
    aliases = list(module.input_output_aliases)
    for a in aliases:
        module.input_output_aliases.remove(a.output)
    for a in aliases:
        module.input_output_aliases.set_up((0, *a.output), a.parameter, a.index, a.kind)


def _checked(entry: Computation) -> tuple[list[Instruction], list[SizeCheck]]:
    """The findings of the size checks, and the checks; the call that would fail is removed."""
    for i in entry.instructions:
        if i.opcode == "custom-call" and i.custom_call_target == size_checks.TARGET:
            report, checks = list(i.operands), size_checks.read(i.extras["backend_config"])
            entry.remove(i)
            return report, checks
    return [], []


def _take(x: Instruction, index: tuple[int, ...], sizes: dict[Place, Instruction]) -> None:
    """Make a part of a parameter static, and what pads it the part itself."""
    c = x.parent
    assert c is not None
    x.shape = static(x.shape)
    x.mark_changed()
    for user in list(x.users):
        if user.opcode == "get-tuple-element":
            _take(user, (*index, user.index), sizes)
        elif user.opcode == "custom-call" and user.custom_call_target == PAD:
            known = [sizes[index, d] if (index, d) in sizes else number(c, n) for d, n in enumerate(x.shape.dims)]
            c.replace(user, c.add("tuple", [x, *known]))


def _size(x: Instruction, index: tuple[int, ...], d: int) -> Instruction:
    for n in index:
        x = x.operands[n]
    assert x.custom_call_target == SLICE
    return x.operands[d + 1]


def _fixed(x: Instruction) -> Instruction:
    """A result without the cut to its size."""
    if not dynamic_places(x.shape):
        return x
    if x.opcode == "tuple":
        assert x.parent is not None
        return x.parent.add("tuple", [_fixed(o) for o in x.operands])
    return x.operands[0]
