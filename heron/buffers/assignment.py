"""The result of buffer assignment: allocations, and the slice of each value."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from heron.analysis.graph.alias import AliasSets
from heron.analysis.graph.dataflow import Dataflow, Value
from heron.errors import HeronError
from heron.hlo.ir import literal
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import HOST_SPACE
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import ShapeIndex
from heron.records import dataclass

AllocationKind = Literal["parameter", "output", "constant", "temp"]


@dataclass(slots=True)
class Allocation:
    """A block of memory somebody provides.

    ``parameter``: the caller's array for part `index` of entry parameter `parameter`. ``output``: the array handed out
    as flat output number `output`. A donated parameter that becomes an output has both numbers, and kind parameter.
    ``constant``: the bytes of `literal`. ``temp``: scratch, at most one in a memory space, gone after the run.
    ``memory_space``: the n of S(n) in the layouts of all values in it, 0 for the device's own memory.
    """

    number: int
    kind: AllocationKind
    size: int
    parameter: int = -1
    index: ShapeIndex = ()
    output: int = -1
    literal: literal.Literal | None = None
    values: list[Value] = field(default_factory=list)
    memory_space: int = 0

    @property
    def is_read_only(self) -> bool:
        return self.kind == "constant" or (self.kind == "parameter" and self.output < 0 and not self.writable)

    @property
    def writable(self) -> bool:
        """A donated parameter is; set by what lives in it."""
        return any(not v.is_given for v in self.values)

    @property
    def is_on_host(self) -> bool:
        """Whether it is scratch in the host's memory, for arrays that the program sends there."""
        return self.kind == "temp" and self.memory_space == HOST_SPACE

    @property
    def name(self) -> str:
        """`parameter 0`, `output 2`, `constant c.1`, `temp`, `temp S(5)`."""
        if self.kind == "parameter":
            part = "{" + ",".join(map(str, self.index)) + "}" if self.index else ""
            return f"parameter {self.parameter}{part}" + (f" = output {self.output}" if self.output >= 0 else "")
        if self.kind == "output":
            return f"output {self.output}"
        if self.kind == "constant":
            return f"constant {self.values[0].name}"
        return f"temp S({self.memory_space})" if self.memory_space else "temp"


@dataclass(frozen=True, slots=True)
class Slice:
    """`size` bytes from `offset` of `allocation` (its number)."""

    allocation: int
    offset: int
    size: int

    def overlaps(self, other: Slice) -> bool:
        return (
            self.allocation == other.allocation
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )


@dataclass(slots=True)
class BufferAssignment:
    """The slice of memory of every value of a scheduled module.

    ``allocations[n]`` has number n. `slice_of` answers for any part of any instruction of a computation that runs
    (not inside fusions). ``outputs[n]``: the slice of flat output n. ``scratch[i]``: memory that nothing else uses
    while `i` runs, for instructions that asked for some. ``peak_bytes``: most temp bytes in use at once;
    ``temp_bytes`` is that plus what packing lost.
    """

    module: Module
    flow: Dataflow
    sets: AliasSets
    allocations: list[Allocation]
    slices: dict[Value, Slice]
    outputs: list[Slice]
    peak_bytes: int = 0
    alignment: int = 64
    scratch: dict[Instruction, Slice] = field(default_factory=dict)

    def slice_of(self, i: Instruction, index: ShapeIndex = ()) -> Slice:
        """The slice of part `index` of `i`'s result. Raises BUF002 for tuples, tokens and unknown instructions."""
        return self.slices[self.flow.value(i, index)]

    def allocation_of(self, i: Instruction, index: ShapeIndex = ()) -> Allocation:
        return self.allocations[self.slice_of(i, index).allocation]

    def parameter(self, number: int, index: ShapeIndex = ()) -> Allocation:
        """The allocation of an entry parameter. Raises BUF004 when there is none."""
        for a in self.allocations:
            if a.parameter == number and a.index == index:
                return a
        raise HeronError("BUF004", f"no allocation for parameter {number}", where=str(index))

    @property
    def temp(self) -> Allocation | None:
        """The scratch allocation in the device's own memory; None when nothing needs one."""
        return next((a for a in self.allocations if a.kind == "temp" and not a.memory_space), None)

    @property
    def temp_bytes(self) -> int:
        return sum(a.size for a in self.allocations if a.kind == "temp" and not a.is_on_host)

    @property
    def host_bytes(self) -> int:
        """Bytes in the host's memory, of arrays that the program sends there."""
        return sum(a.size for a in self.allocations if a.is_on_host)

    @property
    def argument_bytes(self) -> int:
        return self._total("parameter")

    @property
    def output_bytes(self) -> int:
        """Bytes of all outputs, those in donated parameters too."""
        return sum(a.size for a in self.allocations if a.output >= 0)

    @property
    def constant_bytes(self) -> int:
        return self._total("constant")

    def _total(self, kind: AllocationKind) -> int:
        return sum(a.size for a in self.allocations if a.kind == kind)
