"""Buffer assignment: where every value of a scheduled module lives in memory."""

from heron.buffers.assign import assign
from heron.buffers.assignment import Allocation, BufferAssignment, Slice

__all__ = ["Allocation", "BufferAssignment", "Slice", "assign"]
