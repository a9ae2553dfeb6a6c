"""A whole program partitioned: its entry, and what its header says of parameters and results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.sharding import Sharding, parse
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.framework.shares import PARAMETER_SHARDING, RESULT_SHARDING
from heron.passes.sharding.partition import walk
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.default import local_shapes
from heron.passes.sharding.partition.part import Part

if TYPE_CHECKING:
    from heron.analysis.sharding.program import ProgramShardings
    from heron.passes.framework.context import PassContext


def partitioned(module: Module, shardings: ProgramShardings, ctx: PassContext) -> Module:
    """The program of one device. Raises SPMD001 for a program of several replicas, and for ops on one device alone."""
    if module.replica_count > 1:
        raise HeronError(
            "SPMD001",
            f"'{module.name}' has {module.replica_count} replicas of {module.num_partitions} partitions",
            why="a program is partitioned for one replica",
            hint="set replica_count=1 and give each replica an axis of the mesh",
        )
    p = Partitioner(module, shardings, ctx)
    with p.computation(module.entry.name) as entry:
        p.module.entry = entry
        for i in module.entry.parameters:
            p.frame.parts[i] = _parameter(p, i)
        parts = walk.visit(p, module.entry)
        root = module.entry.root
        p.at = root
        wanted = [p.wanted(root, index) for index, _ in root.shape.leaves()]
        parts = [p.reshard(part, s) for part, s in zip(parts, wanted, strict=True)]
        entry.root = p.joined(root.shape, parts)
    _header(p, module, wanted)
    return p.module


def _parameter(p: Partitioner, i: Instruction) -> list[Part]:
    """A parameter of the entry, which keeps its sharding in the text."""
    p.at = i
    shardings = [p.wanted(i, index) for index, _ in i.shape.leaves()]
    value = p.frame.computation.add_parameter(i.number, local_shapes(p, i.shape, iter(shardings)), i.name)
    value.metadata = i.metadata
    value.extras["sharding"] = str(_text(p, i.shape, shardings))
    for name in ("frontend_attributes", "parameter_replication"):
        if name in i.extras:
            value.extras[name] = i.extras[name]
    return p.leaves(value, i.shape, shardings)


def _text(p: Partitioner, shape: Shape, shardings: list[TensorSharding]) -> Sharding:
    written = [p.written(s) for s in shardings]
    return Sharding.tuple(written) if shape.is_tuple else written[0]


def _seen(module: Module, name: str) -> str | None:
    """The sharding that callers see, where it is not by the axes of the program's mesh."""
    return (module.header.get("frontend_attributes") or {}).get(name)


def _result_text(p: Partitioner, module: Module, results: list[TensorSharding]) -> str:
    shape = module.entry.root.shape
    seen = [_seen(module, f"{RESULT_SHARDING}{n}") for n in range(len(results))]
    found = [p.written(s) if text is None else parse(text) for s, text in zip(results, seen, strict=True)]
    return str(Sharding.tuple(found) if shape.is_tuple else found[0])


def _forget(made: Module) -> None:
    """Drop the shardings that callers see from the header; they have their fields now."""
    attributes = made.header.get("frontend_attributes") or {}
    kept = {k: v for k, v in attributes.items() if not k.startswith((PARAMETER_SHARDING, RESULT_SHARDING))}
    if kept != attributes:
        made.header["frontend_attributes"] = kept
    if not kept:
        made.header.pop("frontend_attributes", None)


def _header(p: Partitioner, module: Module, results: list[TensorSharding]) -> None:
    """The header of the old program, with local shapes, and the shardings that callers ask for.

    A parameter whose share has another size than that of its output may still be overwritten.
    """
    made = p.module
    made.filename, made.header = module.filename, dict(module.header)
    made.set_counts(num_partitions=module.num_partitions)
    parameters = module.entry.parameters
    ins = [[p.wanted(i, index) for index, _ in i.shape.leaves()] for i in parameters]
    made.spmd_parameter_shardings = tuple(
        _seen(module, f"{PARAMETER_SHARDING}{n}") or str(_text(p, i.shape, s))
        for n, (i, s) in enumerate(zip(parameters, ins, strict=True))
    )
    for i, text in zip(made.entry.parameters, made.spmd_parameter_shardings, strict=True):
        i.extras["sharding"] = text
    made.spmd_output_sharding = _result_text(p, module, results)
    _forget(made)
    if module.entry_layout is not None:
        seen, result = module.entry_layout
        locals_ = tuple(_like(local_shapes(p, s, iter(found)), s) for s, found in zip(seen, ins, strict=True))
        made.entry_layout = locals_, _like(local_shapes(p, result, iter(results)), result)
    for alias in list(made.input_output_aliases):
        share, given = made.result_shape.at(alias.output), made.parameter_shapes[alias.parameter].at(alias.index)
        if share.byte_size != given.byte_size:
            made.input_output_aliases.remove(alias.output)
            made.buffer_donors.add(alias.parameter, alias.index)


def _like(shape: Shape, layouts: Shape) -> Shape:
    """A local shape with the layouts of the global one."""
    if shape.tuple_shapes is not None:
        return tuple_([_like(a, b) for a, b in zip(shape.tuple_shapes, layouts.tuple_shapes or (), strict=True)])
    return shape.with_layout(layouts.layout) if shape.is_array else shape
