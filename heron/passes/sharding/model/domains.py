"""Edges between values of different shardings, which `domain` ops mark."""

from __future__ import annotations

from collections.abc import Iterator

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.sharding import Sharding, parse
from heron.records import dataclass


@dataclass(frozen=True)
class Edge:
    """The use of a value as operand `n` of `user`: the sharding in which it is made, and that in which it is read."""

    user: Instruction
    n: int
    made: Sharding
    read: Sharding

    @property
    def value(self) -> Instruction:
        return self.user.operands[self.n]

    @property
    def crosses(self) -> bool:
        """Whether the value has another sharding where it is read."""
        return self.made != self.read


def edges(c: Computation) -> Iterator[Edge]:
    """The edges between values with shardings, `domain` ops aside."""
    for i in c.instructions:
        if i.opcode == "domain" or i.sharding is None:
            continue
        for n, o in enumerate(i.operands):
            if o.opcode != "domain" and o.sharding is not None:
                yield edge(i, n, o.sharding, i.sharding)


def edge(user: Instruction, n: int, made: Sharding, own: Sharding) -> Edge:
    """The edge to a user with a sharding of its own; parts of tuples are read in the sharding of their place."""
    value = user.operands[n]
    read = own
    if user.opcode == "tuple":
        read = part(own, user.shape, (n,))
    elif user.opcode == "get-tuple-element":
        read = with_part(made, value.shape, (user.attrs["index"],), own)
    return Edge(user, n, single(made), single(read))


def single(sharding: Sharding) -> Sharding:
    """The one sharding of all leaves of a tuple, where they have one."""
    kinds = set(map(str, sharding.elements))
    return sharding.elements[0] if len(kinds) == 1 else sharding


def part(sharding: Sharding, shape: Shape, index: ShapeIndex) -> Sharding:
    """The sharding of a part of a tuple."""
    if not sharding.is_tuple:
        return sharding
    places = [at[: len(index)] == index for at, _ in shape.leaves()]
    found = [e for e, inside in zip(sharding.elements, places, strict=True) if inside]
    return Sharding.tuple(found) if shape.at(index).is_tuple else found[0]


def with_part(sharding: Sharding, shape: Shape, index: ShapeIndex, new: Sharding) -> Sharding:
    """The sharding of a tuple with another one for a part."""
    places = [at[: len(index)] == index for at, _ in shape.leaves()]
    old = sharding.elements or (sharding,) * len(places)
    rest = iter(new.elements or (new,) * sum(places))
    return Sharding.tuple(next(rest) if inside else e for e, inside in zip(old, places, strict=True))


def text(made: Sharding, read: Sharding) -> str:
    """The attribute of a `domain` op that a value leaves in one sharding, and behind which it is read in another."""
    return f'{{kind="sharding", entry={read}, exit={made}}}'


def shardings_of(domain: Instruction) -> tuple[Sharding, Sharding]:
    """The shardings of the value before a `domain` op and behind it."""
    behind, _, before = domain.attrs["domain"].partition("entry=")[2].rpartition("exit=")
    return single(parse(before.strip().removesuffix("}").strip())), single(parse(behind.strip().rstrip(",")))
