"""Collectives: groups that cover the devices, pieces that fit the groups, pairs of devices that exist."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from heron.errors import HeronError
from heron.hlo.facts import opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.hlo.verifier.groups import Mode, available, group_size, mode, read
from heron.hlo.verifier.rules import Problem, rule

#: groups may differ in size: the result does not depend on it
ANY_SIZES = ("all-reduce", "all-reduce-start")
GROUPED = opcodes(lambda op: "replica_groups" in op.attributes)
PERMUTES = opcodes(lambda op: "source_target_pairs" in op.attributes)


@rule("HLO140", on=GROUPED)
def groups_can_be_read(i: Instruction) -> Iterator[Problem]:
    """replica_groups is a list of lists, an iota or axes of a mesh."""
    try:
        read(i)
    except HeronError as error:
        hint = "they look like {{0,1},{2,3}}, [2,2]<=[4] or mesh['x'=2,'y'=2] {'x'}"
        why = error.what + (f": {error.why}" if error.why else "")
        yield Problem("HLO140", f"the groups of '{i.name}' cannot be read", i, why=why, hint=hint)


def groups_of(i: Instruction) -> Groups | None:
    """The groups; None where HLO140 found fault with them."""
    try:
        return read(i)
    except HeronError:
        return None


@rule("HLO141", on=GROUPED)
def groups_name_each_once(i: Instruction) -> Iterator[Problem]:
    """Groups have members, and name each of 0 to n - 1 exactly once."""
    groups = groups_of(i)
    if not groups:
        return
    text = i.replica_groups.replace(" ", "")
    if text[0] == "{" and "{}" in text:
        yield Problem("HLO141", f"'{i.name}' has an empty group", i)
    total = sum(map(len, groups))
    seen: set[int] = set()
    for n in itertools.chain(*groups):
        if n in seen or not 0 <= n < total:
            how = "twice" if n in seen else f"among {total} ids, so one below {total} is missing"
            yield Problem("HLO141", f"the groups of '{i.name}' name {n} {how}", i)
            return
        seen.add(n)


@rule("HLO142", on=GROUPED)
def groups_cover_the_devices(i: Instruction) -> Iterator[Problem]:
    """Groups, if there are any, have as many members as the module has replicas, partitions or devices."""
    groups, wanted = groups_of(i), available(i)
    total = sum(map(len, groups or ()))
    if not groups or wanted == 1 or total == wanted:
        return
    what = f"the groups of '{i.name}' have {total} members"
    yield Problem("HLO142", what, i, why=f"they count {mode(i).value}, of which there are {wanted}")


@rule("HLO143", on=tuple(o for o in GROUPED if o not in ANY_SIZES))
def groups_are_of_one_size(i: Instruction) -> Iterator[Problem]:
    """All groups have as many members; only all-reduce may have larger and smaller ones."""
    groups = groups_of(i)
    sizes = list(map(len, groups or ()))
    if len(set(sizes)) > 1:
        yield Problem("HLO143", f"the groups of '{i.name}' differ in size", i, why=f"sizes {sizes[:20]}")


@rule("HLO144", on=GROUPED)
def global_ids_are_grouped(i: Instruction) -> Iterator[Problem]:
    """use_global_device_ids needs a channel id and groups."""
    if not i.attrs.get("use_global_device_ids"):
        return
    if i.attrs.get("channel_id") is None:
        why = "without a channel, groups count replicas"
        yield Problem("HLO144", f"'{i.name}' has global ids but no channel_id", i, why=why)
    groups = groups_of(i)
    if mode(i) is Mode.DEVICES and groups is not None and not groups:
        yield Problem(
            "HLO144", f"'{i.name}' has global ids but no groups", i, hint="name all devices in replica_groups"
        )


@rule("HLO145", on=("all-gather", "all-gather-start", "reduce-scatter"))
def shards_are_as_many_as_members(i: Instruction) -> Iterator[Problem]:
    """An all-gather grows, and a reduce-scatter shrinks, its dimension by the size of its groups."""
    groups = groups_of(i)
    if groups is None:
        return  # HLO140
    size, (d,) = group_size(i, groups), i.dimensions
    given, result = i.operands[0].shape, i.shape
    if i.opcode == "all-gather-start":
        result = result.at((1,))
    if result.tuple_shapes is not None:
        result = result.tuple_shapes[0]
    small, large = (result, given) if i.opcode == "reduce-scatter" else (given, result)
    shards = -(-large.dims[d] // small.dims[d]) if small.dims[d] else size
    if size not in (1, shards):
        what = f"'{i.name}' makes {given} into {result}"
        yield Problem("HLO145", what, i, why=f"a factor of {shards} in dimension {d}, but groups of {size}")


@rule("HLO146", on=("all-to-all",))
def exchanged_pieces_are_as_many_as_members(i: Instruction) -> Iterator[Problem]:
    """An all-to-all has one piece for each member of a group: operands, or equal parts of its one operand."""
    groups = groups_of(i)
    if groups is None:
        return  # HLO140
    size, dims = group_size(i, groups), i.attrs.get("dimensions")
    if dims is None:
        if len(i.operands) != size:
            why = f"{len(i.operands)} operands, groups of {size}"
            yield Problem("HLO146", f"'{i.name}' needs one operand for each member of a group", i, why=why)
    elif size and i.operands[0].shape.dims[dims[0]] % size:
        why = f"{i.operands[0].shape.dims[dims[0]]} elements, groups of {size}"
        yield Problem("HLO146", f"dimension {dims[0]} of '{i.name}' cannot be split into equal parts", i, why=why)


@rule("HLO147", on=PERMUTES)
def pairs_name_devices(i: Instruction) -> Iterator[Problem]:
    """Sources and targets are numbers of replicas (with a channel: partitions) that there are."""
    limit = available(i)
    for pair in i.source_target_pairs:
        for name, n in zip(("source", "target"), pair, strict=True):
            if n < 0 or (limit > 1 and n >= limit):
                why = f"they count {mode(i).value}: 0 to {limit - 1}" if limit > 1 else None
                yield Problem("HLO147", f"'{i.name}' has the {name} {n}, which does not exist", i, why=why)


@rule("HLO148")
def all_reduces_agree_on_layouts(module: Module) -> Iterator[Problem]:
    """Either all all-reduces constrain layouts, or none does."""
    first: Instruction | None = None
    for i in module.instructions():
        if i.opcode not in ANY_SIZES:
            continue
        first = first or i
        if bool(i.attrs.get("constrain_layout")) != bool(first.attrs.get("constrain_layout")):
            yield Problem("HLO148", f"of '{first.name}' and '{i.name}', one constrains layouts, the other does not", i)
            return


@rule("HLO149", on=("ragged-all-to-all",))
def offsets_are_vectors(i: Instruction) -> Iterator[Problem]:
    """Offsets and sizes of a ragged all-to-all have one shape, of rank 1 or 2."""
    first = i.operand("input_offsets").shape
    if first.rank not in (1, 2):
        yield Problem("HLO149", f"operand 2 of '{i.name}' must have rank 1 or 2", i, why=f"it is {first}")
    for n, operand in enumerate(i.operands[3:], 3):
        if operand.shape.bare is not first.bare:
            why = f"{operand.shape} and {first}"
            yield Problem("HLO149", f"operands 2 and {n} of '{i.name}' differ in shape", i, why=why)
