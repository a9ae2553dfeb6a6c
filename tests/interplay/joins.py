"""Ways to make one program of several fragments.

A program is a tree: leaves are fragments at a size, inner nodes are joins. Each node takes a flat list of arrays and
gives one. What a node means is written once, against a `Meaning`, and read in two ways: `Traced` is JAX's own control
flow, so the tree becomes one program; `Stepwise` (see `references`) is Python's, and runs every fragment as a program
of its own. Both must give the same.

Values flow from one fragment into another by `mixed`: the receiving array keeps its type, shape and domain, and depends
on the one that is fed. Floats move by at most 1/8; anything else is turned back to front or left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from tests.interplay.fragment import Fragment, Spec
from tests.interplay.library import library

Arrays = list[Any]
Function = Callable[[Arrays], Arrays]


class Meaning(Protocol):
    """How joins are carried out. `xp` is NumPy or jax.numpy."""

    xp: Any

    def part(self, fragment: Fragment, arrays: Arrays) -> Arrays: ...
    def loop(self, form: str, turns: int, body: Function, state: Arrays) -> tuple[Arrays, Arrays]: ...
    def branch(self, index: Any, branches: Sequence[Function], arrays: Arrays) -> Arrays: ...
    def mapped(self, function: Function, arrays: Arrays) -> Arrays: ...


@dataclass(frozen=True)
class Node:
    """A program, or a part of one."""

    def inputs(self) -> list[Spec]:
        raise NotImplementedError

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Node, ...]:
        return ()

    @property
    def leaves(self) -> list[Leaf]:
        return [leaf for p in self.parts for leaf in p.leaves]

    def smaller(self) -> list[Node]:
        """Simpler programs of the same parts, the simplest first."""
        return list(self.parts)


@dataclass(frozen=True)
class Leaf(Node):
    name: str
    n: int

    @property
    def fragment(self) -> Fragment:
        return library()[self.name]

    def inputs(self) -> list[Spec]:
        return self.fragment.inputs(self.n)

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        return m.part(self.fragment, arrays)

    @property
    def leaves(self) -> list[Leaf]:
        return [self]

    def smaller(self) -> list[Node]:
        """At the smallest sizes that are not degenerate, and at half the size."""
        below = [n for n in self.fragment.sizes if 1 < n < self.n]
        return [Leaf(self.name, n) for n in dict.fromkeys([*below[:2], *below[len(below) // 2 :][:1]])]


@dataclass(frozen=True)
class _Many(Node):
    nodes: tuple[Node, ...]

    @property
    def parts(self) -> tuple[Node, ...]:
        return self.nodes

    def inputs(self) -> list[Spec]:
        return [s for node in self.nodes for s in node.inputs()]

    def shares(self, arrays: Arrays) -> list[Arrays]:
        """The arrays of each node."""
        shares, at = [], 0
        for node in self.nodes:
            count = len(node.inputs())
            shares.append(arrays[at : at + count])
            at += count
        return shares

    def smaller(self) -> list[Node]:
        found: list[Node] = list(self.nodes)
        if len(self.nodes) > 2:
            found += [replace(self, nodes=self.nodes[:k] + self.nodes[k + 1 :]) for k in range(len(self.nodes))]
        for k, node in enumerate(self.nodes):
            found += [replace(self, nodes=(*self.nodes[:k], s, *self.nodes[k + 1 :])) for s in node.smaller()]
        return found


@dataclass(frozen=True)
class Side(_Many):
    """Side by side: nothing in common."""

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        return [o for node, share in zip(self.nodes, self.shares(arrays), strict=True) for o in node.apply(m, share)]


@dataclass(frozen=True)
class Fed(_Many):
    """Each is fed by the one before. With `all` the results of all of them come out, else those of the last."""

    all: bool = True

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        outputs: Arrays = []
        before: Arrays = []
        for node, share in zip(self.nodes, self.shares(arrays), strict=True):
            before = node.apply(m, _fed(m.xp, share, before))
            outputs = [*outputs, *before] if self.all else before
        return outputs


@dataclass(frozen=True)
class Shared(_Many):
    """All take the inputs of the first one, as far as they fit, and depend on them where they do not."""

    @cached_property
    def _plan(self) -> tuple[list[Spec], list[list[int]]]:
        specs: list[Spec] = []
        places: list[list[int]] = []
        for node in self.nodes:
            mine: list[int] = []
            for s in node.inputs():
                found = [k for k, known in enumerate(specs) if known == s and k not in mine]
                if not found:
                    specs.append(s)
                mine.append(found[0] if found else len(specs) - 1)
            places.append(mine)
        return specs, places

    def inputs(self) -> list[Spec]:
        return self._plan[0]

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        outputs: Arrays = []
        first = self._plan[1][0]
        for node, places in zip(self.nodes, self._plan[1], strict=True):
            share = [arrays[k] for k in places]
            if not set(places) & set(first):
                share = _fed(m.xp, share, [arrays[k] for k in first])
            outputs += node.apply(m, share)
        return outputs


@dataclass(frozen=True)
class Combined(_Many):
    """All results come out in one array, of f32."""

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        outputs = Side(self.nodes).apply(m, arrays)
        total = m.xp.zeros((3, 5), np.float32)
        for o in outputs:
            total = mixed(m.xp, total, o) * np.float32(0.5)
        return [total]


@dataclass(frozen=True)
class Loop(Node):
    """Again and again: the state is the inputs, moved by the results. `form` is while, fori, scan or reverse."""

    node: Node
    turns: int
    form: str

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.node,)

    def inputs(self) -> list[Spec]:
        return self.node.inputs()

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        def body(state: Arrays) -> Arrays:
            outputs = self.node.apply(m, state)
            return [*_fed(m.xp, state, outputs), *outputs]

        state, results = m.loop(self.form, self.turns, body, arrays)
        return [*state, *results]

    def smaller(self) -> list[Node]:
        found = [self.node, *[replace(self, node=s) for s in self.node.smaller()]]
        return found + [replace(self, turns=t) for t in (1, 2) if t < self.turns]


@dataclass(frozen=True)
class Branch(_Many):
    """One of them, by an index that is an input; the results of the others are zero."""

    def inputs(self) -> list[Spec]:
        return [Spec("s32", (), "index"), *super().inputs()]

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        def taken(k: int) -> Function:
            return lambda given: self.nodes[k].apply(m, self.shares(given)[k])

        return m.branch(arrays[0], [taken(k) for k in range(len(self.nodes))], arrays[1:])


@dataclass(frozen=True)
class Mapped(Node):
    """`vmap` over a first dimension of all inputs."""

    node: Node
    count: int

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.node,)

    def inputs(self) -> list[Spec]:
        return [replace(s, dims=(self.count, *s.dims), domain=s.domain) for s in self.node.inputs()]

    def apply(self, m: Meaning, arrays: Arrays) -> Arrays:
        return m.mapped(lambda one: self.node.apply(m, one), arrays)

    def draw(self, rng: np.random.Generator) -> list[np.ndarray]:
        rows = [drawn(self.node, rng) for _ in range(self.count)]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    def smaller(self) -> list[Node]:
        return [self.node, *[replace(self, node=s) for s in self.node.smaller()]]


def drawn(node: Node, rng: np.random.Generator) -> list[np.ndarray]:
    """Arrays for the inputs of a node."""
    if isinstance(node, Mapped):
        return node.draw(rng)
    if isinstance(node, Loop):
        return drawn(node.node, rng)
    if isinstance(node, Shared):
        return _shared(node, rng)
    if isinstance(node, _Many):
        first = [Spec("s32", (), "index").draw(rng)] if isinstance(node, Branch) else []
        return [*first, *[a for p in node.nodes for a in drawn(p, rng)]]
    return [s.draw(rng) for s in node.inputs()]


def _shared(node: Shared, rng: np.random.Generator) -> list[np.ndarray]:
    specs, places = node._plan
    found: list[np.ndarray | None] = [None] * len(specs)
    for part, mine in zip(node.nodes, places, strict=True):
        for k, array in zip(mine, drawn(part, rng), strict=True):
            found[k] = array if found[k] is None else found[k]
    return [a for a in found if a is not None]


def _fed(xp: Any, arrays: Arrays, before: Arrays) -> Arrays:
    if not before:
        return list(arrays)
    return [mixed(xp, a, before[k % len(before)]) for k, a in enumerate(arrays)]


def mixed(xp: Any, base: Any, fed: Any) -> Any:
    """`base`, of the same type and shape and in its domain, depending on `fed`; every step of it is exact or rounds once."""
    if base.size == 0 or fed.size == 0:
        return base
    if _is_wide_float(base.dtype):
        wide = np.float64 if base.dtype in (np.float64, np.complex128) else np.float32
        moved = _resized(xp, _real(xp, fed), base.shape).astype(wide)
        return (base + xp.where(xp.isfinite(moved), xp.clip(moved, -1, 1), 0).astype(wide) * wide(0.125)).astype(
            base.dtype
        )
    return xp.where(_turn(xp, fed), xp.flip(base), base)


def _turn(xp: Any, fed: Any) -> Any:
    """Whether to turn: by bits of what is exact; of floats, whether any is larger than they get."""
    kind = np.dtype(fed.dtype).kind
    if kind == "b":
        return xp.any(fed)
    if kind in "iu" or np.dtype(fed.dtype).name in ("int4", "uint4"):
        return xp.sum(fed.astype(np.int32) & 1) % 2 == 1
    return xp.any(_real(xp, fed).astype(np.float32) > 1e30)


def _real(xp: Any, x: Any) -> Any:
    return x.real + x.imag if np.dtype(x.dtype).kind == "c" else x


def _resized(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    return x if x.shape == tuple(shape) else xp.resize(x, shape)


def _is_wide_float(dtype: Any) -> bool:
    return np.dtype(dtype).kind == "c" or dtype in (np.float32, np.float64)
