"""Replica groups: which devices talk to each other, read from the text a collective keeps.

Three spellings: one by one ``{{0,1},{2,3}}``; an iota ``[2,2]<=[2,2]T(1,0)``: 2 groups of 2, row by row out of
``arange(4)`` reshaped and transposed; axes of a mesh ``mesh['x'=2,'y'=2] {'y'}``: devices that differ in those axes
alone.
Source: https://openxla.org/xla/operation_semantics (AllReduce), https://openxla.org/xla/sharding.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import prod

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.words import Words

Groups = tuple[tuple[int, ...], ...]
#: an iota is a short text for any number of devices; no machine has more than this
_MOST = 1 << 20


@lru_cache(maxsize=1024)
def parse(text: str) -> Groups:
    """The groups, in order; none means: all devices form one.

    Raises PROTO006 for text that is none of the spellings, HLO030 for sizes that do not fit together.
    """
    w = Words(text, "replica_groups")
    if w.next == "mesh":
        found = _mesh_groups(w)
    elif w.next == "[":
        found = _iota_groups(w)
    else:
        found = _lists(w)
    w.end()
    return found


def spelled(groups: Iterable[Iterable[int]]) -> str:
    """The groups one by one: ``{{0,1},{2,3}}``."""
    return "{" + ",".join("{" + ",".join(map(str, g)) + "}" for g in groups) + "}"


def _lists(w: Words) -> Groups:
    found: list[tuple[int, ...]] = []
    w.expect("{")
    while not w.accept("}"):
        if found:
            w.expect(",")
        w.expect("{")
        found.append(tuple(w.integers("}")))
    return tuple(g for g in found if g)


def _iota_groups(w: Words) -> Groups:
    w.expect("[")
    sizes = w.integers("]")
    w.expect("<=")
    return _tuples(_split(w, _iota(w), sizes))


def _iota(w: Words) -> np.ndarray:
    """``[2,4]T(1,0)``."""
    w.expect("[")
    dims = w.integers("]")
    _bounded(w, dims)
    numbers = np.arange(prod(dims)).reshape(dims)
    if not w.accept("T"):
        return numbers
    w.expect("(")
    order = w.integers(")")
    if sorted(order) != list(range(len(dims))):
        _misfit(w, f"T({order}) does not permute {len(dims)} dimensions")
    return numbers.transpose(order)


def _mesh_groups(w: Words) -> Groups:
    names, sizes = _mesh_axes(w)
    _bounded(w, sizes)
    devices = np.arange(prod(sizes))
    if w.accept(","):
        w.expect("device_ids")
        w.expect("=")
        w.expect("(")
        if w.next == "[":
            devices = _iota(w)
            w.expect(")")
        else:
            devices = np.array(w.integers(")"), np.int64)
    parts, chosen = _axis_parts(w, names, sizes)
    order = [d for d in range(len(parts)) if d not in chosen] + chosen
    devices = _split(w, devices, parts).transpose(order)
    return _tuples(devices.reshape(-1, prod(parts[d] for d in chosen)))


def _mesh_axes(w: Words) -> tuple[list[str], list[int]]:
    """``mesh['x'=2,'y'=4]``."""
    names: list[str] = []
    sizes: list[int] = []
    w.expect("mesh")
    w.expect("[")
    while not w.accept("]"):
        if names:
            w.expect(",")
        names.append(w.string())
        w.expect("=")
        sizes.append(w.integer())
    return names, sizes


def _axis_parts(w: Words, names: list[str], sizes: list[int]) -> tuple[list[int], list[int]]:
    """``{'x','y':(1)2}``: the mesh's dimensions, cut where parts of axes begin and end, and which of them are named."""
    spans: list[tuple[int, int, int]] = []  # axis, and the product of sizes before and after the part
    w.expect("{")
    while not w.accept("}"):
        if spans:
            w.expect(",")
        name = w.string()
        if name not in names:
            w.n -= 1
            w.fail("an axis of the mesh")
        axis = names.index(name)
        before, size = 1, sizes[axis]
        if w.accept(":"):
            w.expect("(")
            before = w.integer()
            w.expect(")")
            size = w.integer()
        if before < 1 or size < 1 or sizes[axis] % (before * size):
            _misfit(w, f"'{name}' of size {sizes[axis]} has no part ({before}){size}")
        spans.append((axis, before, before * size))
    parts: list[int] = []
    place: dict[tuple[int, int], int] = {}
    for axis, size in enumerate(sizes):
        cuts = sorted({1, size, *(cut for a, *both in spans if a == axis for cut in both)})
        if any(b % a for a, b in zip(cuts, cuts[1:], strict=False)):
            _misfit(w, f"parts of '{names[axis]}' overlap")
        for a, b in zip(cuts, cuts[1:], strict=False):
            place[axis, a] = len(parts)
            parts.append(b // a)
    chosen = [n for axis, lo, hi in spans for (a, cut), n in place.items() if a == axis and lo <= cut < hi]
    if len(set(chosen)) != len(chosen):
        _misfit(w, "an axis is named twice")
    return parts, chosen


def _split(w: Words, numbers: np.ndarray, sizes: list[int]) -> np.ndarray:
    if prod(sizes) != numbers.size:
        _misfit(w, f"{sizes} does not divide {numbers.size} devices")
    return numbers.reshape(sizes)


def _tuples(groups: np.ndarray) -> Groups:
    return tuple(tuple(g) for g in groups.tolist())


def _bounded(w: Words, sizes: list[int]) -> None:
    if any(s < 1 for s in sizes) or prod(sizes) > _MOST:
        _misfit(w, f"{sizes} is not a number of devices")


def _misfit(w: Words, why: str) -> None:
    raise HeronError("HLO030", "replica_groups do not fit together", where=w.text[:200], why=why)
