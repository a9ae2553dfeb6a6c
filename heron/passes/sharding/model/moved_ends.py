"""Parameters and results whose devices stand in an order that the program's mesh has not.

A stand-in has as many tiles by the axes of the mesh. Between the two, tiles go from device to device in a manual
computation; the header keeps the shardings that callers see.
"""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Axis, NamedSharding, Sharding, Split
from heron.hlo.sharding.refinement import Refinement
from heron.passes.framework.shares import PARAMETER_SHARDING, RESULT_SHARDING
from heron.passes.sharding.model.annotations import CONSTRAINT, ENTER, LEAVE, Annotations


def move_ends(module: Module, found: Annotations, refinement: Refinement) -> None:
    """Let parameters and results that the common mesh refuses have a stand-in. Raises HLO032 inside tuples."""
    refused = set(refinement.refused)
    for n, p in enumerate(module.entry.parameters):
        given = found.leaves.get(p, [])
        if not refused.isdisjoint(given):
            (named,) = given if not p.shape.is_tuple else (None,)
            if named is None:
                refinement.cannot(next(g for g in given if g in refused))
            _see(module, f"{PARAMETER_SHARDING}{n}", named)
            stand_in, pairs = refinement.stand_in(named)
            found.leaves[p] = [stand_in]
            users = list(p.users)
            is_root = p.is_root
            moved = _moved(module, p, stand_in, pairs, found)
            p.replace_uses_with(moved, users)
            if is_root:
                module.entry.root = moved
    root = module.entry.root
    for index, named in list(found.results.items()):
        if named not in refused:
            continue
        if index and root.opcode != "tuple":
            refinement.cannot(named)
        leaf = [at for at, _ in root.shape.leaves()].index(index)
        _see(module, f"{RESULT_SHARDING}{leaf}", named)
        stand_in, pairs = refinement.stand_in(named)
        found.results[index] = stand_in
        back = tuple((target, source) for source, target in pairs)
        if index:
            root.set_operand(index[0], _moved(module, root.operands[index[0]], stand_in, back, found))
        else:
            module.entry.root = _moved(module, root, stand_in, back, found)


def _see(module: Module, name: str, named: NamedSharding) -> None:
    """Keep the sharding that callers see."""
    closed = NamedSharding(named.mesh, tuple(Split(s.axes) for s in named.splits))
    attributes = dict(module.header.get("frontend_attributes") or {})
    module.header["frontend_attributes"] = {**attributes, name: str(Sharding.of_axes(closed).plain)}


def _moved(
    module: Module,
    x: Instruction,
    sharding: NamedSharding,
    pairs: Sequence[tuple[int, int]],
    found: Annotations,
) -> Instruction:
    """The value with its tiles on other devices."""
    c = module.entry
    parts = sharding.tiles[0].dims
    local = x.shape.with_dims(tuple(-(-d // n) for d, n in zip(x.shape.dims, parts, strict=False)))
    everything = tuple(Axis(n) for n in range(len(sharding.mesh.axes)))
    inside = NamedSharding(sharding.mesh, (Split(),) * x.shape.rank, manual=everything)

    def call(name: str, operand: Instruction, shape: Shape, of: NamedSharding) -> Instruction:
        i = c.add("custom-call", (operand,), shape, like=x, custom_call_target=name)
        found.leaves[i] = [of]
        return i

    enter = call(ENTER, call(CONSTRAINT, x, x.shape, sharding), local, inside)
    channels = [i.attrs.get("channel_id") or 0 for i in module.instructions()]
    permute = c.add(
        "collective-permute", (enter,), local, like=x, channel_id=max(channels) + 1, source_target_pairs=tuple(pairs)
    )
    found.leaves[permute] = [inside]
    found.changed = True
    return call(LEAVE, permute, x.shape, sharding)
