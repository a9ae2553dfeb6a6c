"""layout-assignment: every array gets a layout; the entry keeps the ones its callers see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.layout import layout
from heron.hlo.module import Module
from heron.hlo.shape import Shape, ShapeIndex, tuple_
from heron.passes.base import Pass
from heron.passes.building import array, transpose
from heron.passes.context import PassContext
from heron.passes.expand.expander import home
from heron.passes.layout.bitcast_decomposer import decompose, moves_elements
from heron.passes.layout.orders import inverse, is_default, order
from heron.passes.registry import register
from heron.passes.tuples import arranged, packed, part_of, read_from


@register
@dataclass(frozen=True)
class LayoutAssignment(Pass):
    """Gives every array the default row-major layout, inside the program; parameters and results keep theirs.

    The kernels and library calls all work on row-major arrays. What callers see, the entry's layouts as its header
    gives them (else those of its parameters and its root), stays: a parameter in another order is read as the row-major
    array its bytes are, and transposed; a result is transposed and handed out the same way. Tiles and memory spaces are
    not kept.

    ROOT n = f32[2,3]{0,1} negate(f32[2,3]{0,1} x)
    ->
    bytes = f32[3,2]{1,0} bitcast(x)
    rows = f32[2,3]{1,0} transpose(bytes), dimensions={1,0}
    n = f32[2,3]{1,0} negate(rows)
    columns = f32[3,2]{1,0} transpose(n), dimensions={1,0}
    ROOT r = f32[2,3]{0,1} bitcast(columns)
    """

    name = "layout-assignment"

    def run(self, module: Module, ctx: PassContext) -> bool:
        given = tuple([_order_only(s) for s in module.parameter_shapes])
        result = _order_only(module.result_shape)
        entry = module.entry
        edge = _edge(entry.parameters, given) | _edge_of_result(entry.root, result)
        changed = decompose(_given_layouts(module, edge))
        changed |= _inside(module, edge)
        for p, shape in zip(entry.parameters, given, strict=True):
            if p not in edge and not is_default(shape):
                _receive(p, shape)
                changed = True
        if entry.root not in edge and not is_default(result):
            _hand_out(entry.root, result)
            changed = True
        if module.entry_layout not in (None, (given, result)):
            module.entry_layout = given, result
            changed = True
        return changed


def _inside(module: Module, edge: set[Instruction]) -> bool:
    """Row-major layouts for all but the instructions at the edge, which have theirs already."""
    new: dict[Shape, Shape] = {}
    changed = False
    for i in module.instructions():
        shape = new.get(i.shape)
        if shape is None:
            shape = new[i.shape] = i.shape.with_default_layout()
        if shape is not i.shape and i not in edge:
            i.shape = shape
            changed = True
    return changed


def _given_layouts(module: Module, edge: set[Instruction]) -> list[Instruction]:
    """Bitcasts whose layouts are about to go."""
    found = [i for i in module.instructions() if i.opcode == "bitcast" and moves_elements(i)]
    return [i for i in found if i not in edge and i.operands[0] not in edge]


# -- layouts -----------------------------------------------------------------------------------------------------------
def _order_only(shape: Shape) -> Shape:
    """The shape with the order of its dimensions in memory, and nothing else of its layouts."""
    if shape.tuple_shapes is not None:
        return tuple_([_order_only(s) for s in shape.tuple_shapes])
    if shape.layout is None or any(shape.dynamic):
        return shape.with_default_layout()
    return shape.with_layout(layout(shape.layout.minor_to_major))


# -- the edge ----------------------------------------------------------------------------------------------------------
def _edge(parameters: Sequence[Instruction], given: Sequence[Shape]) -> set[Instruction]:
    """Parameters that have their layouts already and are only read as bytes, with what takes them apart."""
    found: set[Instruction] = set()
    for p, shape in zip(parameters, given, strict=True):
        if p.shape is shape and not is_default(shape):
            parts = _read_as_bytes(p)
            found |= parts or set()
    return found


def _read_as_bytes(i: Instruction) -> set[Instruction] | None:
    """`i` and the parts taken of it where all that is not row-major is read by bitcasts, else None."""
    found = {i}
    for user in i.users:
        if is_default(i.shape) or (user.opcode == "bitcast" and is_default(user.shape)):
            continue
        of_tuple = (
            user.opcode == "get-tuple-element" and user.shape is (i.shape.tuple_shapes or ())[user.attrs["index"]]
        )
        parts = _read_as_bytes(user) if of_tuple else None
        if parts is None:
            return None
        found |= parts
    return found


def _edge_of_result(root: Instruction, shape: Shape) -> set[Instruction]:
    """The root and what it is put together of, where it has its layouts already and those are bitcasts."""
    found, work = set[Instruction](), [(root, shape)]
    while work:
        i, wanted = work.pop()
        if i.shape is not wanted:
            return set()
        if is_default(wanted):
            continue
        if i.opcode == "tuple":
            work += zip(i.operands, wanted.tuple_shapes or (), strict=True)
        elif i.opcode != "bitcast" or not is_default(i.operands[0].shape):
            return set()
        found.add(i)
    read_inside = any(user not in found for i in found for user in i.users)
    return set() if read_inside else found


def _receive(p: Instruction, shape: Shape) -> None:
    """Give a parameter its layout, and its readers row-major arrays."""
    readers, was_root = list(p.users), p.is_root
    p.shape = shape
    leaves: list[Instruction] = []

    def leaf_at(index: ShapeIndex) -> Instruction:
        leaves.append(_row_major_part(p, index))
        return leaves[-1]

    parts = arranged(shape, leaf_at)
    for user in readers:
        if user.opcode == "get-tuple-element":
            read_from(parts[user.attrs["index"]], user)  # type: ignore[index]
    readers = [user for user in readers if p in user.operands]
    if readers or was_root:
        whole = packed(home(p), parts, shape.with_default_layout(), p)
        p.replace_uses_with(whole, readers)
        if was_root:
            home(p).root = whole
    c = home(p)
    for leaf in leaves:
        _join_transposes(leaf)
        c.remove_dead_from(leaf)


def _row_major_part(p: Instruction, index: ShapeIndex) -> Instruction:
    """The array at that index of a parameter, row-major; taken from it anew."""
    for n in index:
        assert p.shape.tuple_shapes is not None
        p = home(p).add("get-tuple-element", [p], p.shape.tuple_shapes[n], index=n)
    return p if not p.shape.is_array or is_default(p.shape) else _rows(p)


def _rows(x: Instruction) -> Instruction:
    """The row-major array that `x` is, from its bytes."""
    places = order(x.shape)
    dims = [x.shape.dims[d] for d in places]
    stored = home(x).add("bitcast", [x], array(x.shape.element_type, dims), like=x)
    return _transposed(stored, inverse(places))


def _hand_out(root: Instruction, shape: Shape) -> None:
    """Make the entry's result have the layouts of `shape`."""
    home(root).root = _in_layouts(root, shape)
    home(root).remove_dead_from(root)


def _in_layouts(x: Instruction, shape: Shape) -> Instruction:
    """A row-major value in the layouts of `shape`."""
    if is_default(shape):
        return x
    if shape.tuple_shapes is None:
        return _in_layout(x, shape)
    parts = [_in_layouts(part_of(x, (n,)), s) for n, s in enumerate(shape.tuple_shapes)]
    return home(x).add("tuple", parts, shape, like=x)


def _in_layout(x: Instruction, shape: Shape) -> Instruction:
    """A row-major array in the layout of `shape`."""
    return home(x).add("bitcast", [_transposed(x, order(shape))], shape, like=x)


def _transposed(x: Instruction, places: Sequence[int]) -> Instruction:
    """`x` transposed, in one step where it is a transpose itself."""
    while x.opcode == "transpose":
        places = [x.attrs["dimensions"][d] for d in places]
        x = x.operands[0]
    return transpose(x, places)


def _join_transposes(rows: Instruction) -> None:
    """Transposes of a transposed parameter, done in one step from the parameter's bytes."""
    for user in list(rows.users):
        if rows.opcode == "transpose" and user.opcode == "transpose":
            home(rows).replace(user, _transposed(rows, user.attrs["dimensions"]))
