"""GSPMD's form of shardings in HLO: tiles in the extra `sharding`; also shardings by axes of any mesh."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heron.analysis.sharding.edges import BARRIERS
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Kind, ShardGroup, Sharding, parse
from heron.hlo.sharding.refinement import named_of
from heron.hlo.sharding.tiles import reject
from heron.passes.sharding.model.annotations import BARRIER, CONSTRAINT, ENTER, LEAVE, Annotations, target

_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d, ]*)\]")


def device_count(module: Module) -> int:
    """The number of devices that shardings name; 1 where they name none."""
    found = 1
    for text in {i.extras["sharding"] for i in module.instructions() if "sharding" in i.extras}:
        found = max(found, *((s.num_devices or 1) for s in _elements(text)))
    return found


def read_tiles(module: Module, found: Annotations, devices: int, by_shardy: bool) -> None:
    """Take in shardings that stand with instructions.

    In a program that Shardy describes, tiles of constraints and borders count alone: others repeat what Shardy says.
    """
    for c in module.non_fusion_computations():
        for i in c.instructions:
            if target(i) in BARRIERS:
                i.extras["frontend_attributes"] = {"xla.sdy.allowed_direction": BARRIERS[target(i)].name}
                i.attrs["custom_call_target"] = BARRIER
                i.mark_changed()
                found.changed = True
            text = i.extras.get("sharding")
            if text is None or i in found.leaves:
                continue
            if by_shardy and target(i) not in (CONSTRAINT, ENTER, LEAVE) and not _is_placed(i, text):
                del i.extras["sharding"]
                found.changed = True
                continue
            _read(i, text, found, devices)


def _read(i: Instruction, text: str, found: Annotations, devices: int) -> None:
    sharding = parse(text)
    if _is_placed(i, text):
        return
    if i.shape.is_token and (sharding.is_tuple or sharding.tiles is not None):  # it is of what is sent away
        del i.extras["sharding"]
        found.changed = True
        return
    try:
        sharding.check(i.shape)
        if i.opcode == "parameter" and any(s.kind is Kind.MAXIMAL for s in _elements(text)):
            reject(f"a parameter on one device: {sharding}", hint="replicate it, or split it")
        leaves = [leaf for _, leaf in i.shape.leaves()]
        elements = sharding.elements or (sharding,) * len(leaves)
        free = _unspecified(i)
        found.leaves[i] = [named_of(s, leaf.rank, devices, free) for s, leaf in zip(elements, leaves, strict=True)]
    except HeronError as error:
        raise error.located(str(i)[:200]) from None
    if sharding.group is not None:
        found.groups[i] = ShardGroup(sharding.group.number, sharding.group.exactly)
        if i.opcode == "custom-call":  # unused, it still counts for the others of the group
            i.attrs["custom_call_has_side_effect"] = True


def _is_placed(i: Instruction, text: str) -> bool:
    """Whether the instruction has an effect, which one device by number shall have."""
    return "maximal" in text and i.has_side_effect and all(s.kind is Kind.MAXIMAL for s in _elements(text))


def _elements(text: str) -> Sequence[Sharding]:
    sharding = parse(text)
    return sharding.elements or (sharding,)


def _unspecified(i: Instruction) -> tuple[int, ...]:
    """The dimensions whose sharding propagation may choose. The annotation is removed."""
    if target(i) not in (CONSTRAINT, ENTER, LEAVE):
        return ()
    match = _UNSPECIFIED.search(str(i.extras.get("backend_config", "")))
    if match is None:
        return ()
    del i.extras["backend_config"]
    return tuple(int(n) for n in match[1].replace(" ", "").split(",") if n)
