"""Layouts, once they are assigned: all there, the same on both sides of a call, kept by ops that cannot change them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from heron.hlo.facts import has_start_operands, having, opcodes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import HOST_SPACE, Layout
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.verifier.calls import ALIASING
from heron.hlo.verifier.rules import Problem, rule

#: ops that hand on or take apart what they are given; no element moves
PASSING = (
    "add-dependency",
    "copy-done",
    "get-tuple-element",
    "opt-barrier",
    "recv-done",
    "tuple",
    "async-update",
    "async-done",
)
#: ops that compute element by element, or along dimensions, in the order the elements lie in
KEEPING = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "cholesky",
    "collective-broadcast",
    "collective-permute",
    "concatenate",
    "dynamic-slice",
    "dynamic-update-slice",
    "fft",
    "map",
    "pad",
    "reduce-scatter",
    "reduce-window",
    "reverse",
    "scatter",
    "select-and-scatter",
    "set-dimension-size",
    "slice",
    "sort",
    "triangular-solve",
)
#: ops whose operands may have elements of another width
OTHER_WIDTH = having(Trait.CHANGES_TYPE) | {"select", "scatter"}


@rule("HLO200", mode="layout_sensitive")
def layouts_are_there(module: Module) -> Iterator[Problem]:
    """Every array has a layout."""
    sound: set[Shape] = set()
    for i in module.instructions():
        if i.shape in sound:
            continue
        missing = next((s for _, s in i.shape.leaves() if s.is_array and s.rank and s.layout is None), None)
        if missing is None:
            sound.add(i.shape)
        else:
            yield Problem("HLO200", f"'{i.name}' has no layout", i, why=f"{missing} in {i.shape}")


@rule("HLO201", on=PASSING, mode="layout_sensitive")
def passed_values_keep_their_layout(i: Instruction) -> Iterator[Problem]:
    """An op that only hands values on gives them in the layout they come in."""
    gives = i.op.shape(i, *(o.shape for o in i.operands))
    if not alike(gives, i.shape, _same):
        why = f"it is given {gives} and stated as {i.shape}"
        yield Problem("HLO201", f"'{i.name}' ({i.opcode}) changes a layout", i, why=why, hint="a copy can")


@rule("HLO202", on=having(Trait.CALL, Trait.CONTROL_FLOW), mode="layout_sensitive")
def calls_keep_layouts(i: Instruction) -> Iterator[Problem]:
    """A caller's operands and result have the layouts of the parameters and the root of what it calls."""
    for c, operands, result in _calls(i):
        for p, operand in zip(c.parameters, operands, strict=True):
            if not alike(p.shape, operand.shape, _same):
                what = f"'{i.name}' passes '{operand.name}' to '{c.name}' in another layout"
                yield Problem("HLO202", what, i, why=f"{operand.shape}, the parameter is {p.shape}")
        if result is not None and not alike(c.root.shape, result, _same):
            what = f"'{i.name}' returns what '{c.name}' does in another layout"
            yield Problem("HLO202", what, i, why=f"{result}, the root is {c.root.shape}")


def _calls(i: Instruction) -> Iterator[tuple[Computation, list[Instruction], Shape | None]]:
    """Computations `i` calls, what it passes to each, and what must come back (None: something else)."""
    if i.opcode == "while":
        yield i.condition, i.operands, None
        yield i.body, i.operands, i.shape
    elif i.opcode == "conditional":
        for branch, operand in zip(i.branch_computations, i.operands[1:], strict=True):
            yield branch, [operand], i.shape
    elif i.opcode == "async-start":
        yield i.calls, i.operands, i.shape.at((1,))
    else:
        yield i.called[0], i.operands, i.shape


@rule("HLO203", mode="layout_sensitive")
def elementwise_ops_keep_layouts(module: Module) -> Iterator[Problem]:
    """An op that works in the order its elements lie in has operands and result of the same rank in one layout.

    Tiles and memory spaces may differ.
    """
    for i in module.instructions():
        if not (i.op.is_elementwise and i.opcode != "copy") and i.opcode not in KEEPING:
            continue
        result = i.shape
        if not result.is_array or result.layout is None:
            continue
        for operand in i.operands:
            shape = operand.shape
            if not shape.is_array or shape.rank != result.rank or shape.layout is None:
                continue
            same_width = i.opcode in OTHER_WIDTH or shape.layout.element_size == result.layout.element_size
            if shape.layout.minor_to_major != result.layout.minor_to_major or not same_width:
                why = f"'{operand.name}' is {shape}, '{i.name}' {result}"
                yield Problem("HLO203", f"{i.opcode} '{i.name}' changes a layout", i, why=why, hint="a copy can")


@rule("HLO204", mode="layout_sensitive")
def entries_keep_promised_layouts(module: Module) -> Iterator[Problem]:
    """The entry's parameters and root have the layouts the header promises to callers, tiles and memory apart."""
    if module.entry_layout is None:
        return
    parameters, result = module.entry_layout
    pairs = [*zip(module.entry.parameters, parameters, strict=False), (module.entry.root, result)]
    for i, promised in pairs:
        if not alike(i.shape, promised, _same_order):
            yield Problem(
                "HLO204", f"'{i.name}' has another layout than the header promises", i, why=f"{i.shape} for {promised}"
            )


@rule("HLO205", on=ALIASING, mode="layout_sensitive")
def aliased_operands_lie_alike(i: Instruction) -> Iterator[Problem]:
    """An output that lives in an operand has its layout, in a fusion within a fusion tiles and memory apart."""
    if "xla_skip_custom_call_alias_shape_check" in i.extras.get("frontend_attributes", {}):
        return
    assert i.parent is not None
    nested = i.opcode == "fusion" and any(i.parent in k.called for k in _fusions(i))
    for output, number, index in i.attrs.get("output_to_operand_aliasing", ()):
        to, source = i.shape.at(tuple(output)), i.operands[number].shape.at(tuple(index))
        if not alike(to, source, _same_order if nested else _same):
            what = f"output {list(output)} of '{i.name}' cannot live in operand {number}"
            yield Problem("HLO205", what, i, why=f"it is {to}, the operand's part {source}")


def _fusions(i: Instruction) -> Iterator[Instruction]:
    assert i.parent is not None and i.parent.module is not None
    return (k for k in i.parent.module.instructions() if k.opcode == "fusion")


@rule("HLO206", on=("copy-start",), mode="layout_sensitive")
def started_copies_keep_the_order(i: Instruction) -> Iterator[Problem]:
    """Both ends of an asynchronous copy have the operand's order of dimensions; memory space and tiles may differ."""
    for n, part in enumerate((i.shape.tuple_shapes or ())[:2]):
        if not alike(part, i.operands[0].shape, _same_order):
            end = ("destination", "source")[n]
            yield Problem(
                "HLO206", f"the {end} of '{i.name}' has another layout", i, why=f"{part}, {i.operands[0].shape}"
            )


@rule("HLO207", on=("copy",), mode="layout_sensitive")
def copies_to_and_from_the_host_keep_layouts(i: Instruction) -> Iterator[Problem]:
    """A copy from the host's memory to a device does not transpose."""
    source, to = i.operands[0].shape, i.shape
    if source.layout is None or to.layout is None:
        return
    if source.layout.memory_space == HOST_SPACE != to.layout.memory_space and not _same_order(source, to):
        yield Problem("HLO207", f"'{i.name}' transposes on the way from the host", i, why=f"{source} to {to}")


@rule("HLO208", on=("reshape",), mode="reshapes_are_bitcasts")
def reshapes_move_nothing(i: Instruction) -> Iterator[Problem]:
    """A reshape outside fusions leaves the elements where they lie."""
    assert i.parent is not None and i.parent.module is not None
    source = i.operands[0].shape
    if is_bitcast(source, i.shape) or i.parent in i.parent.module.fusion_computations():
        return
    yield Problem("HLO208", f"'{i.name}' moves elements", i, why=f"{source} to {i.shape}", hint="put a copy before it")


@rule("HLO209", mode="no_host_memory")
def nothing_lives_on_the_host(module: Module) -> Iterator[Problem]:
    """No value is in the host's memory."""
    for i in module.instructions():
        if any(s.is_on_host for _, s in i.shape.leaves()):
            yield Problem(
                "HLO209", f"'{i.name}' is in the host's memory", i, why=f"memory space {HOST_SPACE} in {i.shape}"
            )


@rule("HLO210", on=opcodes(has_start_operands), mode="layout_sensitive")
def slices_move_between_memories_one_way(i: Instruction) -> Iterator[Problem]:
    """A dynamic-slice does not move data to the host, a dynamic-update-slice not from there."""
    before, after = _space(i.operands[0].shape), _space(i.shape)
    wrong = (0, HOST_SPACE) if i.opcode == "dynamic-slice" else (HOST_SPACE, 0)
    if (before, after) == wrong:
        why = f"from memory space {before} to {after}"
        yield Problem("HLO210", f"'{i.name}' ({i.opcode}) moves data the wrong way", i, why=why, hint="a copy can")


# -- comparing -------------------------------------------------------------------------------------------------------
def alike(a: Shape, b: Shape, same: Callable[[Shape, Shape], bool]) -> bool:
    """Whether all arrays of two shapes agree by `same`; what differs in more than layouts is another rule's."""
    if a is b or a.bare is not b.bare:
        return True
    if a.tuple_shapes is not None and b.tuple_shapes is not None:
        return all(alike(x, y, same) for x, y in zip(a.tuple_shapes, b.tuple_shapes, strict=True))
    return not a.is_array or not b.is_array or same(a, b)


def _same(a: Shape, b: Shape) -> bool:
    return a.layout is b.layout or (not a.rank and (a.layout is None or b.layout is None))


def _same_order(a: Shape, b: Shape) -> bool:
    return _order(a.layout) == _order(b.layout)


def _order(layout: Layout | None) -> tuple[int, ...]:
    return layout.minor_to_major if layout is not None else ()


def _space(s: Shape) -> int:
    return s.layout.memory_space if s.layout is not None else 0


def is_bitcast(a: Shape, b: Shape) -> bool:
    """Whether a reshape from `a` to `b` leaves each element where it lies in memory.

    The dimensions are cut into the smallest groups that hold equally many elements on both sides. Within a group they
    must lie row-major and side by side, and the groups in the same order. Dimensions of one element do not count.
    """
    if a.layout is None or b.layout is None or not a.num_elements:
        return a.layout is b.layout or not a.num_elements
    return _group_order(a, b) == _group_order(b, a) is not None


def _group_order(s: Shape, other: Shape) -> list[int] | None:
    """The groups of `s` from major to minor; None when one does not lie row-major in one piece."""
    assert s.layout is not None
    cuts = set(_cumulative(s)) & set(_cumulative(other))
    group, groups, elements = 0, {}, 1
    for d, n in enumerate(s.dims):
        groups[d] = group
        elements *= n
        if n > 1 and elements in cuts:
            group += 1
    physical = [d for d in reversed(s.layout.minor_to_major) if s.dims[d] > 1]
    order = [groups[d] for d in physical]
    found = list(dict.fromkeys(order))
    lies_row_major = all(a < b for a, b in zip(physical, physical[1:], strict=False) if groups[a] == groups[b])
    in_one_piece = order == [g for g in found for _ in range(order.count(g))]
    return found if lies_row_major and in_one_piece else None


def _cumulative(s: Shape) -> list[int]:
    """Elements up to and including each dimension of more than one."""
    found, elements = [], 1
    for n in s.dims:
        elements *= n
        if n > 1:
            found.append(elements)
    return found
