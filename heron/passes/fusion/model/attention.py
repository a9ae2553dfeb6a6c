"""Finds attention: products of rows that were reduced, and the groups of them that share a matrix.

Queries times keys is a matrix with a row for each query. Values are weighed with its softmax; the gradients of queries,
keys and values are weighed with it, too, and with its gradient. A kernel for each of these products computes as much of
the matrix as it needs anew, a tile at a time. The reductions of a row are small: the first kernel that computes one
gives it as a further result, and the others read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from typing import NamedTuple

from heron.analysis.blocks.tiling import Tiling
from heron.hlo.facts import contracts, is_view
from heron.hlo.ir import types
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.tiled import FREE, MOVES, PRODUCTS, has_form, is_row_reduce, needed, unfit
from heron.records import dataclass

#: the rows' products are also of types that matrix units would round: these are done by plain arithmetic
_PRODUCTS = PRODUCTS | {types.F32: (types.F32,)}
#: what attention has before its second product, a bit for each, and what may stand there beside elementwise ops
_MARKS = {"dot": 1, "reduce": 2, "exponential": 4}
_ALL = sum(_MARKS.values())
_BETWEEN = MOVES | FREE | {"reduce"}


class Rows(NamedTuple):
    """A product of rows that were reduced, what these are computed from, up to the products of the matrix, and why no
    block kernel does it."""

    dot: Instruction
    members: set[Instruction]
    why_not: str

    @property
    def sources(self) -> list[Instruction]:
        """The products that the matrix is computed from."""
        return [i for i in self.members if i.opcode == "dot" and i is not self.dot]


class Part(NamedTuple):
    """The content of one kernel: the product, all it needs that no other kernel computes, and its other outputs."""

    dot: Instruction
    members: set[Instruction]
    gives: tuple[Instruction, ...]


def may_attend(c: Computation) -> bool:
    """Whether there are two products and a reduction, without which no time is spent."""
    opcodes = [i.opcode for i in c.instructions if contracts(i)]
    return opcodes.count("dot") > 1 and "reduce" in opcodes


def matrices(order: Mapping[Instruction, int], most: int) -> list[list[Rows]]:
    """The products of rows among instructions, those that share a matrix together. ``most``: members of each."""
    group_of: dict[Instruction, list[Rows]] = {}
    groups: dict[int, list[Rows]] = {}
    marks: dict[Instruction, int] = {}
    for i in order:
        mark, is_dot = _MARKS.get(i.opcode, 0), i.opcode == "dot"
        if i.opcode in _BETWEEN or i.op.is_elementwise:
            for o in i.operands:
                mark |= marks.get(o, 0)
        marks[i] = mark
        sources = [o for o in i.operands if marks.get(o) == _ALL] if is_dot else []
        if not sources or (found := _rows(i, sources, most)) is None:
            continue
        group = [found]
        for other in {id(g): g for s in found.sources if (g := group_of.get(s)) is not None}.values():
            group = groups.pop(id(other)) + group
        groups[id(group)] = group
        group_of.update((s, group) for rows in group for s in rows.sources)
    return [sorted(group, key=lambda rows: order[rows.dot]) for group in groups.values()]


def _rows(dot: Instruction, operands: list[Instruction], most: int) -> Rows | None:
    """The sources of the rows of a product's operands; None if no product is reduced there."""
    members, stack = {dot}, list(operands)
    why_not = unfit(dot, _PRODUCTS)
    while stack:
        o = stack.pop()
        if o in members or not _is_part(o):
            continue
        members.add(o)
        if len(members) > most:
            return None
        if o.opcode == "dot":
            why_not = why_not or unfit(o, _PRODUCTS)
        else:
            stack += o.operands
    opcodes = [i.opcode for i in members]
    if opcodes.count("dot") < 2 or not _MARKS.keys() <= set(opcodes):
        return None
    return Rows(dot, members, why_not)


@dataclass
class Order:
    """The instructions of a computation with numbers that rise from operands to users.

    A fusion of several results keeps the numbers these had. Numbers then fall from what it reads to what it gives
    beside its root; which is as good as long as no two fusions fall in the same span (`falls`): no path leads back.
    """

    c: Computation
    numbers: dict[Instruction, int] = field(default_factory=dict)
    spans: list[tuple[int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Number all instructions as they are now."""
        self.numbers, self.spans = {i: n for n, i in enumerate(self.c.post_order())}, []

    def falls(self, gives: Collection[Instruction], inputs: Collection[Instruction]) -> list[tuple[int, int]]:
        """From the first result to the last input, if that is behind it."""
        first = min((self.numbers[i] for i in gives), default=len(self.numbers))
        last = max((self.numbers[i] for i in inputs), default=-1)
        return [(first, last)] if first < last else []

    def takes(self, spans: Sequence[tuple[int, int]]) -> bool:
        """Whether no two fusions would have numbers that fall in the same place."""
        found = sorted([*self.spans, *spans])
        return all(last < first for (_, last), (first, _) in pairwise(found))

    def add(self, fusion: Instruction, results: Sequence[Instruction]) -> None:
        """Number a fusion that gives what `results` gave, root first."""
        self.spans += self.falls(results[1:], fusion.operands)
        self.numbers[fusion] = self.numbers[results[0]]
        if fusion.shape.is_tuple:
            self.numbers.update((u, self.numbers[results[u.index]]) for u in fusion.users)


def why_not(group: list[Rows], order: Mapping[Instruction, int]) -> str:
    """Why products that share a matrix cannot be block kernels; empty when they may."""
    found = next((rows.why_not for rows in group if rows.why_not), "")
    if found:
        return found
    union, dots = _all_of(group)
    matrix, _ = _kinds(sorted(union - dots, key=order.__getitem__))
    read = min((i.name for i in matrix if not _serves(i, union)), default="")
    return f"'{read}' is read elsewhere, too" if read else ""


def _all_of(group: list[Rows]) -> tuple[set[Instruction], set[Instruction]]:
    """The members of a group, and its products."""
    return set[Instruction]().union(*(rows.members for rows in group)), {rows.dot for rows in group}


def parts(group: list[Rows], order: Mapping[Instruction, int]) -> list[Part] | str:
    """The kernels of products that share a matrix, those first that others read from; why there are none. ``order``:
    numbers that rise from operands to users."""
    union, dots = _all_of(group)
    matrix, numbers = _kinds(sorted(union - dots, key=order.__getitem__))
    # what is there for others anyway is read; but what rows are reduced to is for a kernel of ours to give
    given = {i for i in union - matrix - numbers if not _serves(i, union) and not is_of_places(i)} - dots
    found: list[Part] = []
    waiting = list(group)
    while waiting:
        ready = ((rows, needed(rows.dot, rows.members - given)) for rows in waiting)
        rows, members = next((x for x in ready if len(group) == 1 or _is_of_one_row(*x)), (None, set[Instruction]()))
        if rows is None:
            return "no kernel of its rows gives what they are reduced to"
        waiting.remove(rows)
        found.append(Part(rows.dot, members, ()))
        given |= {i for i in members if i.opcode == "reduce"} | {rows.dot}
    return [part._replace(gives=tuple(sorted(_gives(part, found, union), key=order.__getitem__))) for part in found]


def _kinds(order: list[Instruction]) -> tuple[set[Instruction], set[Instruction]]:
    """Instructions that depend on a product, in two sets: not through a reduction (the matrix), and through one (one
    value for each row)."""
    matrix, numbers = set[Instruction](), set[Instruction]()
    for i in order:
        if i.opcode == "dot" or i.opcode != "reduce" and not matrix.isdisjoint(i.operands):
            matrix.add(i)
        elif i.opcode == "reduce" or not numbers.isdisjoint(i.operands):
            numbers.add(i)
    return matrix, numbers


def _is_of_one_row(rows: Rows, members: set[Instruction]) -> bool:
    """Whether all reductions are of the rows that the product sums over: it needs no others whole."""
    if not any(i.opcode == "reduce" for i in members):
        return True
    return sum(v.kind == "row" for v in Tiling(rows.dot, members).variables) == 1


def _gives(part: Part, all_parts: list[Part], union: set[Instruction]) -> Iterator[Instruction]:
    """The reductions of a kernel that others read."""
    others = [p.members for p in all_parts if p is not part]
    for i in part.members:
        if i.opcode == "reduce" and any(u not in union or any(u in m and i not in m for m in others) for u in i.users):
            yield i


def depends(inputs: Collection[Instruction], on: Collection[Instruction], order: Mapping[Instruction, int]) -> bool:
    """Whether any of some instructions depends on any of others."""
    first = min((order[i] for i in on), default=len(order))
    seen, stack = set[Instruction](), list(inputs)
    while stack:
        i = stack.pop()
        if i in on:
            return True
        if i not in seen and order[i] > first:
            seen.add(i)
            stack += i.operands
            stack += i.control_predecessors
    return False


def moves_before(group: list[Rows], around: set[Instruction]) -> set[Instruction]:
    """Instructions that only move whole rows of the products' operands, and have no other users."""
    dots = {rows.dot for rows in group}.union(*(rows.sources for rows in group))
    found, stack = set[Instruction](), [o for dot in dots for o in dot.operands]
    while stack:
        o = stack.pop()
        if o in found or o in around or not _moves_rows(o) or not has_form(o) or not _serves(o, around | found):
            continue
        found.add(o)
        stack += o.operands
    return found


def _moves_rows(i: Instruction) -> bool:
    """Whether an op leaves the elements of the last dimension side by side."""
    if i.opcode == "transpose":
        return i.dimensions[-1] == i.shape.rank - 1
    return is_view(i) and i.shape.dims[-1:] == i.operands[0].shape.dims[-1:]


def is_of_places(i: Instruction) -> bool:
    """Whether a value depends on places alone, as masks do: it costs nothing to compute anew."""
    seen, stack = {i}, [i]
    while stack:
        at = stack.pop()
        if at.opcode not in ("iota", "constant") and not (at.operands and has_form(at)):
            return False
        if at.opcode == "constant" and not at.shape.is_scalar:
            return False
        for o in at.operands:
            if o not in seen:
                seen.add(o)
                stack.append(o)
    return True


def _is_part(i: Instruction) -> bool:
    """Whether an op may stand between the products."""
    if i.opcode == "constant":
        return i.shape.is_scalar
    return i.opcode == "dot" or is_row_reduce(i) or has_form(i) and i.opcode != "concatenate"


def _serves(i: Instruction, members: set[Instruction]) -> bool:
    return not i.is_root and all(u in members for u in i.users)
