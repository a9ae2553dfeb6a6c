"""The devices that a collective exchanges between, by their global numbers.

A device's global number is replica · partitions + partition. The ids in `replica_groups` mean replicas, partitions or
global numbers; ``channel_id`` and ``use_global_device_ids`` tell which.
Source: https://openxla.org/stablehlo/spec#collective-ops.
"""

from __future__ import annotations

from functools import lru_cache

from heron.hlo.ir import replica_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.hlo.verifier.groups import Mode, mode

#: frontend attributes by which a user keeps collectives together, and apart from others
_APART = ("collective_group_key", "_scheduling_group_id")


def device_groups(i: Instruction, module: Module) -> Groups:
    """The groups of a collective with `replica_groups`, each in the order of its members."""
    return _groups(i.attrs.get("replica_groups") or "{}", mode(i), module.replica_count, module.num_partitions)


@lru_cache(maxsize=256)
def _groups(text: str, ids: Mode, replicas: int, partitions: int) -> Groups:
    given = replica_groups.parse(text)
    if ids is Mode.DEVICES:
        return given or (tuple(range(replicas * partitions)),)
    if ids is Mode.PARTITIONS:
        given = given or (tuple(range(partitions)),)
        return tuple(tuple(r * partitions + p for p in g) for r in range(replicas) for g in given)
    given = given or (tuple(range(replicas)),)
    if ids is Mode.REPLICAS:
        return tuple(tuple(r * partitions + p for r in g) for p in range(partitions) for g in given)
    return tuple(tuple(r * partitions + p for r in g for p in range(partitions)) for g in given)


def groups_key(i: Instruction) -> tuple[object, ...]:
    """Equal for collectives whose groups are spelled alike: ids, their meaning, and whether the layout is fixed.

    Collectives that a user put into different groups of work are not alike.
    """
    a, told = i.attrs, i.extras.get("frontend_attributes")
    return (
        a.get("replica_groups") or "{}",
        a.get("channel_id") is not None,
        bool(a.get("use_global_device_ids")),
        bool(a.get("constrain_layout")),
        *(told.get(name) for name in _APART if isinstance(told, dict)),
    )


def device_pairs(i: Instruction, module: Module) -> tuple[tuple[int, int], ...]:
    """(source, target) of a collective-permute: partitions of each replica where there is a channel, else replicas."""
    replicas, partitions = module.replica_count, module.num_partitions
    pairs = i.source_target_pairs
    if i.attrs.get("channel_id") is not None:
        return tuple((r * partitions + s, r * partitions + t) for r in range(replicas) for s, t in pairs)
    return tuple((s * partitions + p, t * partitions + p) for p in range(partitions) for s, t in pairs)
