"""Custom calls that say something about their operand and give it as it is."""

from __future__ import annotations

#: where a value is to be kept, how it is spread, what may be assumed of it
MARKERS = frozenset({
    "Sharding", "MoveToHost", "MoveToDevice", "PinToDevice", "PinToDeviceSram", "Pin", "Unpin",
    "annotate_device_placement", "AssumeGatherIndicesInBound", "xla.sdy.FuncResultSharding",
    "xla.sdy.ShardingConstraint", "xla.sdy.PropagationBarrier",
})  # fmt: skip
