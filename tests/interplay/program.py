"""Joint programs: a tree of fragments with its inputs, drawn from a number, and lowered by JAX to StableHLO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.interplay import joins
from tests.interplay.fragment import LARGE, SIZES, Fragment
from tests.interplay.joins import Branch, Combined, Fed, Leaf, Loop, Mapped, Node, Shared, Side
from tests.interplay.library import library
from tests.interplay.spreading import Spread
from tests.interplay.traced import Traced

#: the leaves that the programs of a group are made of, and the share of groups with 64-bit types
_HAND, _WIDE_GROUPS = 6, 0.4


@dataclass(frozen=True)
class Program:
    """A tree, the seed of its inputs, whether these are donated, and whether JAX has 64-bit types.

    With `devices` it is for so many, and its values have shardings drawn from the same seed.
    """

    node: Node
    seed: int = 0
    donated: bool = False
    wide: bool = False
    devices: int = 0

    def inputs(self) -> list[np.ndarray]:
        return joins.drawn(self.node, np.random.default_rng(self.seed))

    @property
    def exact(self) -> bool:
        """Every output has one right answer to the last bit, whatever the inputs of a part were before rounding."""
        return all(leaf.fragment.exact for leaf in self.node.leaves)

    @property
    def ulps(self) -> float:
        return max(leaf.fragment.ulps for leaf in self.node.leaves)

    @property
    def families(self) -> list[str]:
        return sorted({leaf.fragment.family for leaf in self.node.leaves})

    def lowered(self) -> str:
        """StableHLO text of the program as one."""
        import jax

        with jax.enable_x64(self.wide):
            arrays = self.inputs()
            spread = Spread(self.seed, self.devices) if self.devices else None

            def joint(*args: Any) -> list[Any]:
                outputs = self.node.apply(spread or Traced(), list(args))
                if spread is not None:  # so that something in use is spread
                    outputs[:1] = [spread.kept(o, always=True) for o in outputs[:1]]
                return outputs

            donated = tuple(range(len(arrays))) if self.donated else ()
            jitted = jax.jit(joint, keep_unused=True, donate_argnums=donated)
            text = jitted.trace(*arrays).lower(lowering_platforms=("cpu",)).as_text()
            if spread is None or "sdy.mesh" not in text:
                return text
            # a mesh without devices leaves their number open
            return text.replace("num_partitions = 1 :", f"num_partitions = {spread.mesh.size} :", 1)


def read(text: str) -> Program:
    """A program from its `repr`."""
    names = (Program, Leaf, Side, Fed, Shared, Combined, Loop, Branch, Mapped)
    return eval(text, {"__builtins__": {}}, {c.__name__: c for c in names})


def draw(
    seed: int,
    number: int,
    names: Sequence[str] = (),
    least: int = 2,
    most: int = 6,
    sizes: Sequence[int] = SIZES,
    devices: int = 0,
    group: int = 1,
    large: bool = False,
) -> Program:
    """Program `number` of a series.

    Args:
        names: the fragments to draw from; all when empty.
        least, most: how many fragments.
        sizes: of which a fragment takes one it allows, or its smallest.
        devices: how many the program may be spread over; 0 for a program without shardings.
        group: so many numbers in a row draw from the same few leaves, and join them differently.
        large: at large sizes alone, of fragments that have any.
    """
    rng = np.random.default_rng((seed, number))
    known = library()
    pool = [known[n] for n in names] if names else list(known.values())
    pool = [f for f in pool if f.large] if large else pool
    sizes = LARGE if large else sizes
    # big programs take longer and find no more: most have two or three parts
    count = int(rng.choice(range(least, most + 1), p=_weights(most - least + 1)))
    if group > 1:
        hand, wide = _hand(np.random.default_rng((seed, number // group, group)), pool, sizes)
        leaves = [hand[int(rng.integers(len(hand)))] for _ in range(count)]
    else:
        leaves = [_leaf(rng, pool[int(rng.integers(len(pool)))], sizes) for _ in range(count)]
        wide = False
    node = _tree(rng, leaves)
    wide = wide or any(leaf.fragment.wide for leaf in leaves) or (group == 1 and rng.random() < 0.2)
    return Program(node, int(rng.integers(1 << 30)), bool(rng.random() < 0.15), bool(wide), devices)


def alone(names: Sequence[str] = (), devices: int = 0) -> list[Program]:
    """Each fragment as a program, at a middle size."""
    known = library()
    found = [known[n] for n in names] if names else list(known.values())
    seeds = range(len(found)) if devices else [0] * len(found)
    middle = [Leaf(f.name, f.sizes[len(f.sizes) // 2]) for f in found]
    return [Program(m, n, wide=f.wide, devices=devices) for m, n, f in zip(middle, seeds, found, strict=True)]


def _weights(count: int) -> np.ndarray:
    weights = 0.5 ** np.arange(count)
    return weights / weights.sum()


def _leaf(rng: np.random.Generator, fragment: Fragment, sizes: Sequence[int]) -> Leaf:
    allowed = [n for n in (*fragment.sizes, *fragment.large) if n in sizes] or fragment.sizes[:1]
    return Leaf(fragment.name, int(rng.choice(allowed)))


def _hand(rng: np.random.Generator, pool: Sequence[Fragment], sizes: Sequence[int]) -> tuple[list[Leaf], bool]:
    """The leaves of a group, and whether its programs have 64-bit types: all or none, so that parts are compiled once."""
    wide = bool(rng.random() < _WIDE_GROUPS)
    pool = [f for f in pool if wide or not f.wide] or pool
    return [_leaf(rng, pool[int(rng.integers(len(pool)))], sizes) for _ in range(_HAND)], wide


def _tree(rng: np.random.Generator, leaves: Sequence[Leaf]) -> Node:
    """Join all of `leaves`: some first among themselves, in between inside a loop, a branch or a map."""
    nodes: list[Node] = list(leaves)
    while len(nodes) > 1:
        count = int(rng.integers(2, len(nodes) + 1))
        group, nodes = tuple(nodes[:count]), nodes[count:]
        kind = rng.choice([Side, Fed, Shared, Combined, Branch], p=[0.3, 0.35, 0.15, 0.08, 0.12])
        joined = Fed(group, bool(rng.random() < 0.6)) if kind is Fed else kind(group)
        nodes.insert(int(rng.integers(len(nodes) + 1)), _wrapped(rng, joined))
    return nodes[0]


def _wrapped(rng: np.random.Generator, node: Node) -> Node:
    way = rng.random()
    if way < 0.22:
        return Loop(node, int(rng.integers(1, 4)), str(rng.choice(["while", "fori", "scan", "reverse"])))
    if way < 0.32 and all(leaf.fragment.mapped for leaf in node.leaves):
        return Mapped(node, int(rng.integers(1, 4)))
    return node
