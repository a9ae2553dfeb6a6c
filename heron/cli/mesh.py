"""``--mesh x=2,y=4``, ``--in 0=x,y`` and ``--out 0=x``: shardings given on the command line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NoReturn

from heron.cli.named import parameter_named
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Axis, Mesh, NamedSharding, Sharding, Split

_DIM = "one entry a dimension: axes joined by '+', '-' for none, '?' at the end where more may be added"


def mesh_of_text(text: str) -> Mesh:
    """The mesh of ``x=2,y=4``. Raises CLI060."""
    axes: list[tuple[str, int]] = []
    for part in text.split(","):
        name, _, size = part.strip().partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or not size.isdigit() or not int(size):
            raise HeronError("CLI060", f"'{part}' is no axis of a mesh", where=f"--mesh {text}", hint="--mesh x=2,y=4")
        axes.append((name, int(size)))
    if len({name for name, _ in axes}) != len(axes):
        raise HeronError("CLI060", "two axes of the mesh have one name", where=f"--mesh {text}", hint="--mesh x=2,y=4")
    return Mesh(tuple(axes))


def annotate(module: Module, mesh: Mesh, inputs: Iterable[str], outputs: Iterable[str]) -> None:
    """Give parameters and results of a module the shardings of ``--in`` and ``--out``.

    Raises CLI060 (unreadable), CLI061 (no such parameter, result, dimension or axis), CLI062 (does not divide).
    """
    module.set_counts(module.replica_count, mesh.size)
    parameters = module.entry.parameters
    for text in inputs:
        key, dims = _entry("--in", text)
        i = _chosen("--in", text, key, parameters)
        i.sharding = _sharding("--in", text, dims, i.shape, mesh)
    root = module.entry.root
    leaves = [leaf for _, leaf in root.shape.leaves()]
    given: dict[int, Sharding] = {}
    for text in outputs:
        key, dims = _entry("--out", text)
        if not key.isdigit() or int(key) >= len(leaves):
            _unknown("--out", text, f"there is no result {key}", f"the program has {len(leaves)}")
        given[int(key)] = _sharding("--out", text, dims, leaves[int(key)], mesh)
    if not given:
        return
    if root.opcode == "parameter":  # the result may be split in another way than the parameter
        root = module.entry.root = module.entry.add("copy", [root])
    free = [Sharding.of_axes(NamedSharding(mesh, (Split((), True),) * leaf.rank)) for leaf in leaves]
    elements = [given.get(n, s) for n, s in enumerate(free)]
    root.sharding = Sharding.tuple(elements) if root.shape.is_tuple else elements[0]


def remeshed(module: Module, mesh: Mesh) -> None:
    """Spread a module, whose shardings are by axes, over a mesh of the same axis names and other sizes.

    Raises CLI061 for axes that the new mesh lacks or cannot cut as before, and for manual computations, whose local
    shapes are written for the old one.
    """
    for i in module.instructions():
        s = i.sharding
        if s is not None:
            elements = [_moved(e, mesh, i) for e in (s.elements or (s,))]
            i.sharding = Sharding.tuple(elements) if s.is_tuple else replace(elements[0], group=s.group)
    module.set_counts(module.replica_count, mesh.size)


def _moved(s: Sharding, mesh: Mesh, i: Instruction) -> Sharding:
    named = s.named
    if named is None or named.mesh == mesh:
        return s
    if named.manual:
        why = f"the program has a manual computation for {named.mesh}, at %{i.name}"
        raise HeronError(
            "CLI061", "this program cannot be spread over another mesh", where=f"--mesh for {mesh}", why=why
        )
    numbers = {name: n for n, (name, _) in enumerate(mesh.axes)}

    def axes(old: Sequence[Axis]) -> tuple[Axis, ...]:
        found: list[Axis] = []
        for axis in old:
            name = named.mesh.axes[axis.number][0]
            if name not in numbers:
                _unknown("--mesh", str(mesh), f"the mesh has no axis '{name}'", f"%{i.name} is split along it")
            found.append(replace(axis, number=numbers[name]))
        return tuple(found)

    splits = tuple(Split(axes(split.axes), split.is_open) for split in named.splits)
    return Sharding.of_axes(NamedSharding(mesh, splits, axes(named.replicated), axes(named.unreduced)))


def _entry(option: str, text: str) -> tuple[str, list[str]]:
    key, equals, dims = text.partition("=")
    if not equals or not key.strip():
        raise HeronError(
            "CLI060", f"'{text}' gives no sharding", where=f"{option} {text}", hint=f"{option} 0=x,y: {_DIM}"
        )
    return key.strip().removeprefix("%"), [d.strip() for d in dims.split(",")] if dims.strip() else []


def _chosen(option: str, text: str, key: str, parameters: list[Instruction]) -> Instruction:
    found = parameter_named(parameters, key)
    if found is not None:
        return found
    names = [p.name for p in parameters]
    near = difflib.get_close_matches(key, names, 1)
    why = f"did you mean '{near[0]}'?" if near else f"the program has {len(parameters)}: {', '.join(names[:8])}"
    _unknown(option, text, f"there is no parameter {key}", why)


def _sharding(option: str, text: str, dims: list[str], shape: Shape, mesh: Mesh) -> Sharding:
    if len(dims) > shape.rank:
        _unknown(option, text, f"{len(dims)} dimensions are given", f"{shape} has {shape.rank}")
    numbers = {name: n for n, (name, _) in enumerate(mesh.axes)}
    used: set[str] = set()
    splits: list[Split] = []
    for d, size in enumerate(shape.dims):
        entry = dims[d] if d < len(dims) else "-"
        is_open = entry.endswith("?")
        names = [n for n in entry.removesuffix("?").split("+") if n not in ("", "-")]
        for name in names:
            if name not in numbers:
                near = difflib.get_close_matches(name, numbers, 1)
                why = f"did you mean '{near[0]}'?" if near else f"its axes are {', '.join(numbers)}"
                _unknown(option, text, f"the mesh has no axis '{name}'", why)
            if name in used:
                _unknown(option, text, f"the axis '{name}' is used twice", "an axis splits one dimension of a value")
            used.add(name)
        axes = tuple(Axis(numbers[n]) for n in names)
        parts = 1
        for axis in axes:
            parts *= mesh.axes[axis.number][1]
        if size % parts:
            why = f"{size} elements in {parts} parts, along {'+'.join(names)} of {mesh}"
            what = f"the axes do not divide dimension {d} of {shape}"
            raise HeronError("CLI062", what, where=f"{option} {text}", why=why, hint="fewer or smaller axes")
        splits.append(Split(axes, is_open))
    return Sharding.of_axes(NamedSharding(mesh, tuple(splits)))


def _unknown(option: str, text: str, what: str, why: str) -> NoReturn:
    raise HeronError("CLI061", what, where=f"{option} {text}", why=why)
