"""Fusions whose outputs are cut into boxes: by concatenations and pads they are computed from, or because they are
slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from math import prod
from typing import NamedTuple

from heron.analysis.cost.code_size import CodeLimit, op_code
from heron.analysis.fusion.fusion import Fusion, is_pointwise
from heron.analysis.indexing.hlo_maps import is_reshape_like
from heron.hlo.facts import is_given, keeps_order
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: pieces, and instructions in all of them together, that are worth their code
MAX_PIECES = 64
MAX_INSTRUCTIONS = 1 << 11
#: most positions from one element of a pad to the next for which each has a box of its own
MAX_STEP = 4
#: most elements that the operands of a concatenation give by turns
MAX_TURN = 8
#: the fewest elements, and the longest rows of whole dimensions, for which edges are cut off
MIN_PADDED, MAX_ROW = 256, 15
#: elements of a loop up to which a choice between operands in each is much of its time
MAX_SHORT = 31


@dataclass(frozen=True, slots=True)
class Cuts:
    """The cuts of the outputs' ``dimension``: at ``borders``, 0 and its size included. ``hero``: a concatenation, or a
    pad with room between elements.

    Such a pad shows its operand at every second position, say: positions 0, 2, 4 … are then cut at the first of
    ``borders``, and 1, 3, 5 … at the second. A concatenation alone has one tuple of them.

        a = f32[8] pad(even, 0), padding=0_1_1
        b = f32[8] pad(odd, 0), padding=1_0_1
        ROOT r = f32[8] add(a, b)                   step 2, borders (0, 8), (0, 8)
    """

    hero: Instruction
    dimension: int
    borders: tuple[tuple[int, ...], ...]

    @property
    def step(self) -> int:
        """The positions from one element of a box to the next."""
        return len(self.borders)

    @property
    def at_edges(self) -> bool:
        """Whether the cuts are between padding and the rest."""
        return self.step == 1 and self.hero.opcode != "concatenate"

    @property
    def boxes(self) -> list[range]:
        """The positions of each box."""
        found = [
            range(begin + (rest - begin) % self.step, end, self.step)
            for rest, borders in enumerate(self.borders)
            for begin, end in pairwise(borders)
        ]
        return [box for box in found if box]


class _Joint(NamedTuple):
    """A concatenation or pad that outputs are computed from; position p of it is position ``low + p * step`` of a pad
    along ``dimension`` that shows it."""

    i: Instruction
    dimension: int = -1
    low: int = 0
    step: int = 1


def cuts_of(fusion: Fusion, strided: bool = False) -> Cuts | None:
    """The cuts by concatenations along one dimension that all outputs are computed from element by element.

    Reshapes between them and the outputs may give that dimension another place and size. None without concatenations,
    when outputs differ in their dimensions, or where pieces would be too many. ``strided``: by pads, too.
    """
    if not fusion.outputs or any(o.part is not None for o in fusion.outputs):
        return None
    dims = fusion.outputs[0].shape.dims
    if any(o.shape.dims != dims for o in fusion.outputs):
        return None
    joints = list(_joints(fusion.roots, dims if strided else ()))
    hero, dimension, borders = _cut_at_joints(joints, dims)
    if hero is None and strided:
        hero, dimension, borders = _cut_by_turns(joints, dims)
    if hero is None and strided:
        hero, dimension = _cut_at_edges(fusion.roots, dims, borders[0])
    if hero is None:
        return None
    cuts = Cuts(hero, dimension, tuple(tuple(sorted(b)) for b in borders))
    pieces = len(cuts.boxes)
    if not 1 < pieces <= MAX_PIECES:
        return None
    few = pieces * len(fusion.computation) <= MAX_INSTRUCTIONS
    return cuts if few or _copied(fusion.roots, cuts, joints) <= MAX_INSTRUCTIONS else None


def _copied(roots: Sequence[Instruction], cuts: Cuts, joints: Iterable[_Joint]) -> int:
    """The instructions of all pieces together: each has those of one operand of every concatenation that cuts, and all
    that does not go through these. Counting ends above the limit."""
    pieces, dims = cuts.boxes, roots[0].shape.dims
    apart, total = set[Instruction](), 0
    for joint in joints if cuts.step == 1 else ():
        seen = _borders(dims, joint, 1) if joint.i.opcode == "concatenate" else None
        if seen is None or seen[0] != cuts.dimension:
            continue
        apart.add(joint.i)
        (along,) = joint.i.dimensions
        operands = [o for o in joint.i.operands if o.shape.dims[along]]
        for o, (begin, end) in zip(operands, pairwise(sorted(seen[1][0])), strict=True):
            total += _reached([o], set()) * sum([begin <= piece.start < end for piece in pieces])
            if total > MAX_INSTRUCTIONS:
                return total
    return total + len(pieces) * _reached(roots, apart)


def _reached(starts: Iterable[Instruction], apart: set[Instruction]) -> int:
    """The number of instructions that `starts` are computed from, without going through those apart."""
    found, stack = set[Instruction](), list(starts)
    while stack:
        i = stack.pop()
        if i not in found and i not in apart:
            found.add(i)
            stack.extend(i.operands)
    return len(found)


def joined_at(arrays: Sequence[Instruction], dims: tuple[int, ...], limit: CodeLimit) -> tuple[int, tuple[int, ...]]:
    """The dimension along which concatenations make `arrays` of these dimensions element by element, and where their
    operands meet; -1 without such concatenations, or where a copy of the code for each operand would be too much.
    """
    hero, dimension, borders = _cut_at_joints(list(_joints(arrays, ())), dims)
    places = tuple(sorted(borders[0]))
    pieces = len(places) - 1
    if hero is None or not 1 < pieces <= MAX_PIECES:
        return -1, ()
    copied = sum(op_code(i, limit) for i in above_joints(arrays))
    return (dimension, places) if pieces * copied <= limit.most else (-1, ())


def above_joints(roots: Iterable[Instruction]) -> set[Instruction]:
    """The ops that compute `roots` from concatenations and from what is no function of single elements."""
    found: set[Instruction] = set()
    stack = list(roots)
    while stack:
        i = stack.pop()
        if i not in found and (is_pointwise(i) or keeps_order(i)):
            found.add(i)
            stack.extend(i.operands)
    return found


def _cut_at_joints(joints: Sequence[_Joint], dims: tuple[int, ...]) -> tuple[Instruction | None, int, list[set[int]]]:
    """The first op that cuts, its dimension, and where it and others cut that dimension: by rests of division by the
    step of a pad."""
    pad = next((j for j in joints if j.i.opcode == "pad"), None)
    hero: Instruction | None = None
    dimension, borders = -1, [set[int]()]
    if pad is None:
        joints = _innermost(joints, dims)
    else:
        hero, dimension = pad.i, pad.dimension
        borders = [{0, dims[dimension]} for _ in range(_gap(hero, dimension))]
    for joint in joints:
        seen = _borders(dims, joint, len(borders))
        if seen is not None and (hero is None or seen[0] == dimension):
            hero, dimension = hero or joint.i, seen[0]
            for rest, found in seen[1].items():
                borders[rest] |= found
    return hero, dimension, borders


def _innermost(joints: Sequence[_Joint], dims: tuple[int, ...]) -> Sequence[_Joint]:
    """The joints that cut the innermost of the dimensions that joints cut, if that is short and the others are made of
    one array each: where these read it is found by arithmetic, which a loop inside does once. Long loops choose by
    masks, in whole vectors, and of few elements several loops are no gain."""
    seen = [(j, found[0]) for j in joints if (found := _borders(dims, j, 1)) is not None]
    inner = max((d for _, d in seen), default=-1)
    if (
        inner < 0
        or dims[inner] > MAX_SHORT
        or prod(dims) < MIN_PADDED
        or any(d != inner and made_of_one(j.i) is None for j, d in seen)
    ):
        return joints
    return [j for j, d in seen if d == inner]


def made_of_one(i: Instruction) -> tuple[Instruction, tuple[int, ...]] | None:
    """The array whose slices a concatenation joins, and where each of them begins; None for another one.

    a = f32[1,9] slice(x), slice={[7:8], [0:9]}
    b = f32[7,9] slice(x), slice={[0:7], [0:9]}
    ROOT r = f32[8,9] concatenate(a, b), dimensions={0}          x, beginning at 7 and at 0
    """
    (d,) = i.dimensions
    source = i.operands[0].operands[0] if i.operands[0].opcode == "slice" else i.operands[0]
    if not is_given(source) or not all(o is source or _is_slice_along(o, source, d) for o in i.operands):
        return None
    return source, tuple(0 if o is source else o.slice[d][0] for o in i.operands)


def _is_slice_along(i: Instruction, source: Instruction, d: int) -> bool:
    """Whether `i` is neighbouring elements of `source` along a dimension, with all of the others."""
    if i.opcode != "slice" or i.operands[0] is not source:
        return False
    taken = enumerate(zip(i.slice, source.shape.dims, strict=True))
    return all(step == 1 and (k == d or (low, high) == (0, n)) for k, ((low, high, step), n) in taken)


def _cut_by_turns(joints: Sequence[_Joint], dims: tuple[int, ...]) -> tuple[Instruction | None, int, list[set[int]]]:
    """The first concatenation whose operands give the outputs' elements by turns, the innermost dimension, and its ends
    for each element of a turn.

        c = u8[100,2] concatenate(a, b), dimensions={1}
        ROOT r = u8[200] reshape(c)                 borders (0, 200) for even places and for odd ones
    """
    d = next((d for d in reversed(range(len(dims))) if dims[d] > 1), -1)
    for joint in joints:
        i = joint.i
        turn = prod(i.shape.dims[i.dimensions[0] :]) if i.opcode == "concatenate" and joint.step == 1 else 0
        if d >= 0 and 1 < turn <= MAX_TURN and dims[d] % turn == 0:
            return i, d, [{0, dims[d]} for _ in range(turn)]
    return None, -1, [set()]


def _joints(roots: Iterable[Instruction], padded: tuple[int, ...]) -> Iterator[_Joint]:
    """The concatenations above `roots` whose elements have the roots' own row-major numbers; pads of the dimensions
    `padded`, and concatenations that one of these shows."""
    seen: set[_Joint] = set()
    stack = [_Joint(r) for r in roots][::-1]
    while stack:
        joint = stack.pop()
        if joint in seen:
            continue
        seen.add(joint)
        i = joint.i
        if i.opcode == "concatenate":
            yield joint
        elif i.opcode == "pad" and joint.step == 1 and i.shape.dims == padded and (d := spread_dimension(i)) >= 0:
            yield joint._replace(dimension=d)
            stack.append(_Joint(i.operands[0], d, i.padding[d][0], _gap(i, d)))
        elif joint.step == 1 and padded and is_lookup(i):
            stack.append(_Joint(i.operands[1]))
        elif joint.step == 1 and keeps_places(i):
            stack.append(_Joint(i.operands[0]))
        elif is_pointwise(i):
            stack.extend(joint._replace(i=o) for o in reversed(i.operands) if o.shape.dims == i.shape.dims)


def is_lookup(i: Instruction) -> bool:
    """Whether `i` reads one element of an array for each element of its indices, in their order."""
    if i.opcode != "gather" or any(n != 1 for n in i.slice_sizes):
        return False
    return i.operands[1].shape.num_elements == i.shape.num_elements


def _cut_at_edges(
    roots: Iterable[Instruction], dims: tuple[int, ...], borders: set[int]
) -> tuple[Instruction | None, int]:
    """Adds the borders between padding and the rest, along the innermost dimension in which loops over both would not
    be vectorised; the first padded op that the roots are computed from, or what shows it, and that dimension."""
    long = [d for d, n in enumerate(dims) if n > 1]
    if not long or prod(dims) < MIN_PADDED:
        return None, -1
    narrow = [d for d in long if d == long[-1] or prod(dims[d + 1 :]) <= MAX_ROW]
    padded = list(_padded(roots, dims))
    for d in reversed(narrow):
        hero = None
        for seen in padded:
            found = {edge - seen.starts[d] for edge in _EDGES[seen.i.opcode](seen.i, d)}
            within = {edge for edge in found if 0 < edge < dims[d]}
            if within:
                hero = hero or seen.by
                borders |= {0, dims[d], *within}
        if hero is not None:
            return hero, d
    return None, -1


class _Padded(NamedTuple):
    """An op with edges inside it, of which roots show the elements from ``starts`` on. ``by``: it or a slice of it."""

    i: Instruction
    starts: tuple[int, ...]
    by: Instruction


def _padded(roots: Iterable[Instruction], dims: tuple[int, ...]) -> Iterator[_Padded]:
    """The pads, windows and slices of concatenations that `roots` are computed from element by element."""
    seen: set[tuple[Instruction, tuple[int, ...]]] = set()
    stack = [_Padded(r, (0,) * len(dims), r) for r in roots if r.shape.dims == dims][::-1]
    while stack:
        at = stack.pop()
        if at[:2] in seen:
            continue
        seen.add(at[:2])
        i = at.i
        if i.opcode in _EDGES:
            # loops over slices of a pad become vectors as they are, and joints are looked for in `_joints`
            if (i.opcode == "concatenate") == (at.by is not i):
                yield at
        elif i.opcode == "slice" and all(step == 1 for _, _, step in i.slice):
            starts = tuple(a + low for a, (low, _, _) in zip(at.starts, i.slice, strict=True))
            stack.append(_Padded(i.operands[0], starts, i if at.by is i else at.by))
        elif is_pointwise(i):
            same = [o for o in reversed(i.operands) if o.shape.dims == i.shape.dims]
            stack.extend(_Padded(o, at.starts, o if at.by is i else at.by) for o in same)


def _pad_edges(i: Instruction, d: int) -> tuple[int, ...]:
    size, n = i.operands[0].shape.dims[d], i.shape.dims[d]
    low, _, interior = i.padding[d]
    begin, end = max(low, 0), min(low + size, n)
    return (begin, end) if not interior and begin < end else ()


def _window_edges(i: Instruction, d: int) -> tuple[int, ...]:
    size, n, w = i.operands[0].shape.dims[d], i.shape.dims[d], i.window[d]
    if w.base_dilation != 1:
        return ()
    reach = (w.size - 1) * w.window_dilation
    begin, end = -(-w.pad_low // w.stride), min(n, (size - 1 - reach + w.pad_low) // w.stride + 1)
    return (begin, end) if begin < end else ()


def _joined_edges(i: Instruction, d: int) -> tuple[int, ...]:
    return tuple(accumulate(o.shape.dims[d] for o in i.operands)) if d == i.dimensions[0] else ()


#: the positions along a dimension at which an op goes on with something else: with padding or its operand, or with the
#: next operand
_EDGES: dict[str, Callable[[Instruction, int], tuple[int, ...]]] = {
    "pad": _pad_edges,
    "reduce-window": _window_edges,
    "concatenate": _joined_edges,
}


def spread_dimension(i: Instruction) -> int:
    """The one dimension in which a pad leaves a little room between elements, if it does nothing else; or -1."""
    changed = [d for d, edges in enumerate(i.padding) if any(edges)]
    if len(changed) != 1 or min(i.padding[changed[0]]) < 0 or not 1 < _gap(i, changed[0]) <= MAX_STEP:
        return -1
    return changed[0]


def _gap(pad: Instruction, d: int) -> int:
    return pad.padding[d][2] + 1


def _borders(dims: tuple[int, ...], joint: _Joint, step: int) -> tuple[int, dict[int, set[int]]] | None:
    """The dimension that a joint cuts, and where, by rests of division by `step`; None when it is not to be cut."""
    i = joint.i
    if i.opcode == "pad":
        d, (low, _, interior) = joint.dimension, i.padding[joint.dimension]
        if interior + 1 != step:
            return None
        return d, {low % step: {low, min(low + i.operands[0].shape.dims[d] * step, dims[d])}}
    if joint.step == 1:
        found = _seen_in(dims, i)
        return None if found is None else (found[0], dict.fromkeys(range(step), found[1]))
    if joint.step != step or i.dimensions[0] != joint.dimension:
        return None
    ends = accumulate((o.shape.dims[joint.dimension] for o in i.operands), initial=0)
    places = {min(joint.low + end * step, dims[joint.dimension]) for end in ends}
    return joint.dimension, {joint.low % step: places}


def keeps_places(i: Instruction) -> bool:
    """Whether `i` shows its operand's elements in their row-major order, in a shape of its own."""
    return i.opcode == "reshape" or i.opcode == "bitcast" and is_reshape_like(i) and _row_major(i)


def _row_major(i: Instruction) -> bool:
    return all(s.layout is None or s.layout.is_default for s in (i.shape, i.operands[0].shape))


def _seen_in(dims: tuple[int, ...], i: Instruction) -> tuple[int, set[int]] | None:
    """A concatenation's dimension and borders as those of outputs of `dims`; None when no dimension shows them."""
    (d,) = i.dimensions
    sizes = i.shape.dims
    ends = accumulate((o.shape.dims[d] for o in i.operands), initial=0)
    if sizes == dims:
        return d, set(ends)
    outer, stretch = prod(sizes[:d]), prod(sizes[d + 1 :])
    places = [end * stretch for end in ends]
    for k in range(len(dims)):
        inner = prod(dims[k + 1 :])
        if prod(dims[:k]) == outer and dims[k] > 1 and inner and not any(place % inner for place in places):
            return k, {place // inner for place in places}
    return None


def are_slices(fusion: Fusion) -> bool:
    """Whether the fusion has several outputs and all of them are slices, or views of such."""
    return len(fusion.outputs) > 1 and all(_is_slice(o.instruction) for o in fusion.outputs)


def _is_slice(i: Instruction) -> bool:
    while keeps_order(i):
        i = i.operands[0]
    return i.opcode == "slice"
