"""Custom calls that say something about their operand and give it as it is."""

from __future__ import annotations

_SPREAD = "how values are spread was decided, or this is the only device"
_PLACE = "values stay in the memory of the device that computes them"
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
}
