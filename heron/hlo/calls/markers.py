"""Custom calls that say something about their operand and give it as it is."""

from __future__ import annotations

from heron.hlo.calls.declaration import Call
from heron.hlo.ir.instruction import Instruction

_SPREAD = "how values are spread was decided, or this is the only device"
_PLACE = "the value is in the memory of the device that computes it"
_KEEP = "what is kept close is the hardware's to decide"
#: where a value is to be kept, how it is spread, what may be assumed of it: each with why nothing follows from it where
#: code is made for one device and one memory
MARKERS: dict[str, str] = {
    "Sharding": _SPREAD,
    "xla.sdy.FuncResultSharding": _SPREAD,
    "xla.sdy.ShardingConstraint": _SPREAD,
    "xla.sdy.PropagationBarrier": _SPREAD,
    "MoveToHost": _PLACE,
    "MoveToDevice": _PLACE,
    "annotate_device_placement": _PLACE,
    "PinToDevice": _PLACE,
    "PinToDeviceSram": _KEEP,
    "Pin": _KEEP,
    "Unpin": _KEEP,
    "AssumeGatherIndicesInBound": "indices out of bounds have a meaning of their own here",
    "ShardBarrierFrom": _SPREAD,
    "ShardBarrierTo": _SPREAD,
    "SetBound": "bounds of dynamic sizes are found where they are needed",
    "LayoutConstraint": "the order of an array in memory changes none of its values",
    # these give nothing
    "xla.sdy.ShardingGroup": _SPREAD,
    "InspectSharding": _SPREAD,
}
#: borders of a region where each device computes with its own part of a value: in, and out again. On one device the
#: part is the whole
BORDERS = frozenset({
    "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape",
})  # fmt: skip


def _border_form(i: Instruction) -> str:
    """As many results as operands, each of its operand's element type and rank."""
    shapes = [o.shape for o in i.operands]
    if not shapes or not all(s.is_array for s in shapes):
        return ""
    arrays = [f"{s.element_type}[{','.join('_' * s.rank)}]" for s in shapes]
    into, out = (", ".join(f"{letter}{n}:{a}" for n, a in enumerate(arrays)) for letter in "xy")
    return f"{into} -> {out}"


#: an array that nobody has written yet: XLA prints it for what a loop fills slice by slice. Its bytes are zero here
UNWRITTEN = "AllocateBuffer"
#: markers that are left have no value to give; borders are for several devices
CALLS = (
    Call("marker", tuple(MARKERS), any_order=True),
    Call("unwritten", (UNWRITTEN,)),
    *(
        Call(
            name, (name,), _border_form,
            refusal="it cuts values up among several devices, and the program is compiled for one",
            hint="a program whose header says num_partitions=N is partitioned; `heron run FILE --devices N` runs it",
        )
        for name in sorted(BORDERS)
    ),
)  # fmt: skip


def is_unwritten(i: Instruction) -> bool:
    """Whether a custom call gives an array that nobody has written."""
    return i.custom_call_target == UNWRITTEN and not i.operands and i.shape.is_array


TO_HOST, TO_DEVICE = "MoveToHost", "MoveToDevice"
#: the opcodes that may say where an array is kept
MARKING = frozenset({"custom-call", "copy"})


def move_of(i: Instruction) -> str:
    """`TO_HOST` or `TO_DEVICE` where a marker says in which memory its array is from there on; empty for all else."""
    if not i.shape.is_array or i.custom_call_target not in (TO_HOST, TO_DEVICE, "annotate_device_placement"):
        return ""
    if i.custom_call_target in (TO_HOST, TO_DEVICE):
        return i.custom_call_target
    place = i.extras.get("frontend_attributes", {}).get("_xla_buffer_placement")
    if place is None:
        return TO_HOST if i.shape.is_on_host else TO_DEVICE
    return TO_HOST if place in ("pinned_host", "unpinned_host") else TO_DEVICE


def is_identity(i: Instruction) -> bool:
    """Whether a custom call gives its operands as they are, or nothing, on one device."""
    if i.custom_call_target not in MARKERS and i.custom_call_target not in BORDERS:
        return False
    if not any(True for _ in i.shape.leaves()):
        return i.custom_call_target in MARKERS
    given = [o.shape.bare for o in i.operands]
    one = len(given) == 1 and given[0] is i.shape.bare
    return one or i.shape.is_tuple and given == [s.bare for s in i.shape.tuple_shapes or ()]
