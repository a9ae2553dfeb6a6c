"""Thunks: the steps a compiled program is made of, as plain data.

A thunk names buffers by `Slice` (allocation, offset, size). They run differently on each machine: on the CPU the whole
sequence becomes one native function (`codegen/native/program.py`), on the simulated GPU it is walked step by step
(`runtime/sim/executable.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

import numpy as np

from heron.analysis.fusion.row_blocks import RowBlocks
from heron.buffers.assignment import Slice
from heron.hlo.ir.types import ElementType
from heron.records import dataclass
from heron.runtime.collectives.exchange import Piece, Reduction, Way
from heron.runtime.fortran import Call, Steps
from heron.runtime.library_call import Descriptor
from heron.runtime.strided import Tiling

#: the library of thunks that do linear algebra on the CPU
LAPACK = "scipy.linalg.lapack"


@dataclass(frozen=True, slots=True)
class Start:
    """A whole number in memory, at least 0 and at most ``last``, times ``bytes``."""

    number: Slice
    type: ElementType
    last: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MovingSlice(Slice):
    """``part`` bytes of a slice, from its offset plus the sum of ``starts`` on, which the running program reads."""

    part: int
    starts: tuple[Start, ...]


def place(s: Slice) -> str:
    """A slice as ``allocation[offset:end]``."""
    if isinstance(s, MovingSlice):
        terms = "".join(f" + {place(t.number)} * {t.bytes}" for t in s.starts)
        return f"#{s.allocation}[{s.offset}{terms}, {s.part} bytes]"
    return f"#{s.allocation}[{s.offset}:{s.offset + s.size}]"


def places(slices: Iterable[Slice]) -> str:
    """Slices as `place` writes them, with commas."""
    return ", ".join(map(place, slices))


class Step:
    """The base of all thunks: how a thunk shows itself."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        """The kind in summaries: kernel, gemm, copy, while, …, or the library's name."""
        return type(self).__name__.removesuffix("Thunk").lower()

    def line(self) -> str:
        """The step and the slices that it reads and writes, in a line."""
        raise NotImplementedError

    def inner(self) -> Iterable[tuple[str, str, Sequence]]:
        """Thunks inside this one: a heading that may be empty, what their lines begin with, and the thunks."""
        return ()


@dataclass(frozen=True, slots=True)
class KernelThunk(Step):
    """Run one of heron's own kernels. ``kernel`` indexes the program's kernel table."""

    kernel: str
    args: tuple[Slice, ...]
    source: str

    def line(self) -> str:
        return f"kernel {self.kernel}({places(self.args)})"


@dataclass(frozen=True, slots=True)
class GemmThunk(Step):
    """``out[b] = op(lhs[b]) @ op(rhs[b])`` over row-major batches: [batch, m, k] x [batch, k, n] → [batch, m, n].

    ``lhs_transposed``: lhs is stored [batch, k, m]; ``rhs_transposed``: rhs is stored [batch, n, k]. ``adds``: the
    product is added to what ``out`` holds.
    """

    lhs: Slice
    rhs: Slice
    out: Slice
    batch: int
    m: int
    n: int
    k: int
    lhs_transposed: bool
    rhs_transposed: bool
    operand_type: ElementType
    element_type: ElementType
    source: str
    adds: bool = False

    def line(self) -> str:
        shape = f"{self.batch}x{self.m}x{self.n}x{self.k} {self.element_type}"
        flags = " lhs^T" * self.lhs_transposed + " rhs^T" * self.rhs_transposed
        sign = "+=" if self.adds else "="
        return f"gemm {shape}{flags} {place(self.out)} {sign} {place(self.lhs)} @ {place(self.rhs)}"


@dataclass(frozen=True, slots=True)
class RowBlocksThunk(Step):
    """Products and kernels done one after the other for a block of rows, then for the next one (`RowBlocks`).

    ``steps`` are as they would be for all rows. Of a slice whose allocation is below 0 a thread has only a block, in
    its part of ``scratch``, whose first `COUNTER` bytes count the blocks that are begun. ``columns``: of the first
    product's result. ``turned``: numbers of the products whose right operand has the rows, as columns: what is computed
    is a block of columns.
    """

    steps: tuple[GemmThunk | KernelThunk, ...]
    cut: RowBlocks
    columns: int
    turned: frozenset[int]
    scratch: Slice
    source: str

    #: bytes ahead of the threads' parts
    COUNTER: ClassVar[int] = 64

    @property
    def block_bytes(self) -> dict[int, int]:
        """Bytes of a thread's block of each array, by the number of its allocation."""
        slices = [s for t in self.steps for s in (t.args if isinstance(t, KernelThunk) else (t.lhs, t.rhs, t.out))]
        return self.bytes_of(slices, self.cut, self.columns)

    @staticmethod
    def bytes_of(slices: Iterable[Slice], cut: RowBlocks, columns: int) -> dict[int, int]:
        """As `block_bytes`, in whole cache lines."""
        part, whole = (cut.width, columns) if cut.width else (1, 1)
        rows = cut.batch * cut.rows
        sizes = {s.allocation: s.size // rows * cut.block * part // whole for s in slices if s.allocation < 0}
        return {allocation: -(-size // 64) * 64 for allocation, size in sizes.items()}

    @property
    def kind(self) -> str:
        return "row blocks"

    def line(self) -> str:
        return f"{self.cut}:"

    def inner(self) -> Iterator[tuple[str, str, Sequence]]:
        yield "", "    ", self.steps


@dataclass(frozen=True, slots=True)
class ConvolutionThunk(Step):
    """A convolution by sums in registers."""

    lhs: Slice
    rhs: Slice
    out: Slice
    products: Tiling
    element_type: ElementType
    source: str

    def line(self) -> str:
        arrays = f"{place(self.out)} = {place(self.lhs)} * {place(self.rhs)}"
        return f"convolution {self.products.summary} {self.element_type} {arrays}"


@dataclass(frozen=True, slots=True)
class FftThunk(Step):
    """A Fourier transform of the last ``len(lengths)`` dimensions of a row-major operand of `dims`; ``fft_type``
    as HLO has it. ``scratch``: as large as the operand, where the kind needs it.
    """

    operand: Slice
    out: Slice
    fft_type: str
    lengths: tuple[int, ...]
    dims: tuple[int, ...]
    element_type: ElementType
    source: str
    scratch: Slice | None = None

    def line(self) -> str:
        lengths = "x".join(map(str, self.lengths))
        scratch = "" if self.scratch is None else f", scratch {place(self.scratch)}"
        return f"{self.fft_type} {lengths} {self.element_type} {place(self.out)} = {place(self.operand)}{scratch}"


@dataclass(frozen=True, slots=True)
class LapackThunk(Step):
    """Do the steps to each matrix of a batch. ``strides``: the bytes from a matrix of an array to the next."""

    steps: Steps
    args: tuple[Slice, ...]
    strides: tuple[int, ...]
    batch: int
    library: str
    source: str

    @property
    def kind(self) -> str:
        return self.library

    def line(self) -> str:
        calls = ", ".join(step.routine for step in self.steps.steps if isinstance(step, Call))
        return f"{calls} x{self.batch} on {places(self.args)}"


@dataclass(frozen=True, slots=True)
class CopyThunk(Step):
    """Copy ``target.size`` bytes; the two slices never overlap partly."""

    origin: Slice
    target: Slice
    source: str

    def line(self) -> str:
        return f"copy {place(self.target)} = {place(self.origin)}"


@dataclass(frozen=True, slots=True)
class CopiesThunk(Step):
    """Copy each of the ``origins`` to the target of its number, which is as large; targets overlap nothing."""

    origins: tuple[Slice, ...]
    targets: tuple[Slice, ...]
    source: str
    SHOWN: ClassVar[int] = 4

    @property
    def kind(self) -> str:
        return "copy"

    def line(self) -> str:
        pairs = zip(self.targets[: self.SHOWN], self.origins, strict=False)
        shown = ", ".join(f"{place(target)} = {place(origin)}" for target, origin in pairs)
        return f"copy {shown}{f' and {more} more' if (more := len(self.targets) - self.SHOWN) > 0 else ''}"


@dataclass(frozen=True, slots=True)
class RowCopiesThunk(Step):
    """Make each of ``rows`` rows of the target of pieces side by side.

    Piece n is ``sizes[n]`` bytes of ``origins[n]``: from its first byte on in the first row, and ``steps[n]`` bytes
    further in each next one.
    """

    origins: tuple[Slice, ...]
    steps: tuple[int, ...]
    sizes: tuple[int, ...]
    target: Slice
    rows: int
    source: str

    @property
    def kind(self) -> str:
        return "copy"

    def line(self) -> str:
        return f"copy {place(self.target)} = {self.rows} rows of {len(self.origins)} pieces of {places(self.origins)}"


@dataclass(frozen=True, slots=True)
class WhileThunk(Step):
    """Run ``condition``; while the byte at ``predicate`` is not 0, run ``body`` and then ``condition`` again.

    ``trips``: how often ``body`` runs, where whoever drives the loop counts; ``condition`` is empty then.
    """

    condition: Sequence
    predicate: Slice
    body: Sequence
    source: str
    trips: int | None = None

    def line(self) -> str:
        return f"while {place(self.predicate)}" if self.trips is None else f"while {self.trips} times"

    def inner(self) -> Iterator[tuple[str, str, Sequence]]:
        yield "", "  ? ", self.condition
        yield "", "    ", self.body


@dataclass(frozen=True, slots=True)
class ConditionalThunk(Step):
    """Run one branch: by a pred (nonzero → branch 0, zero → branch 1) or an s32 (out of range → the last)."""

    selector: Slice
    by_predicate: bool
    branches: tuple[Sequence, ...]
    source: str

    def line(self) -> str:
        return f"conditional {place(self.selector)}"

    def inner(self) -> Iterator[tuple[str, str, Sequence]]:
        for n, branch in enumerate(self.branches):
            yield f"  branch {n}:", "    ", branch


@dataclass(frozen=True, slots=True)
class RandomStateThunk(Step):
    """Write the program's random state, its low word first, and advance it by ``delta``.

    Every executable has one state, which starts at ``FIRST_STATE`` and lives as long as it.
    """

    out: Slice
    delta: int
    source: str

    @property
    def kind(self) -> str:
        return "random state"

    def line(self) -> str:
        return f"random state {place(self.out)}, then += {self.delta}"


@dataclass(frozen=True, slots=True)
class CollectiveThunk(Step):
    """Exchange arrays with the other devices of a group.

    Attributes:
        opcode: of the op, without ``-start``.
        groups: the devices' numbers. A device that is in none gets zeros.
        senders: of a `Way.FROM`, for each device the rank in its group of the member it gets arrays from; -1: zeros.
        pieces: how operands are cut, one for each pair of an operand and a result.
        reducers: of ways that combine, the kernel of each pair; it takes as many operands as a group has members. Where
            groups differ in size, those for the smallest come first.
        reduction: of ways that combine, where a library does it.
    """

    opcode: str
    way: Way
    groups: tuple[tuple[int, ...], ...]
    senders: tuple[int, ...]
    operands: tuple[Slice, ...]
    results: tuple[Slice, ...]
    pieces: tuple[Piece, ...]
    reducers: tuple[str, ...]
    source: str
    reduction: Reduction | None = None

    def __str__(self) -> str:
        return f"{self.opcode} '{self.source}'"

    @property
    def kind(self) -> str:
        return self.opcode

    def line(self) -> str:
        members = f"{len(self.groups)} x {len(self.groups[0])} devices"
        return f"{self.opcode} {members} {places(self.results)} = {places(self.operands)}"


@dataclass(frozen=True, slots=True)
class DeviceNumberThunk(Step):
    """Write a number of the device that runs the program as u32: its partition's or its replica's."""

    out: Slice
    is_partition: bool
    source: str

    @property
    def kind(self) -> str:
        return "device number"

    def line(self) -> str:
        return f"{'partition' if self.is_partition else 'replica'} number {place(self.out)}"


@dataclass(frozen=True, slots=True)
class HostThunk(Step):
    """Call a Python function on NumPy views of the slices (a library routine with no native binding here).

    The last ``results`` of them it writes, the others it reads.
    """

    function: Callable[..., None]
    args: tuple[Slice, ...]
    types: tuple[tuple[np.dtype, tuple[int, ...]], ...]
    library: str
    source: str
    results: int = 1

    @property
    def kind(self) -> str:
        return self.library

    def line(self) -> str:
        return f"{self.library} {self.function}({places(self.args)})"


@dataclass(frozen=True, slots=True)
class LibraryThunk(Step):
    """Call a library of the GPU's. ``on_host`` computes the same by NumPy, for the simulated GPU.

    The arrays of the call are ``on_host.args``, in the order of ``call.arrays``.
    """

    call: Descriptor
    on_host: HostThunk

    @property
    def args(self) -> tuple[Slice, ...]:
        return self.on_host.args

    @property
    def source(self) -> str:
        return self.on_host.source

    @property
    def kind(self) -> str:
        return self.call.library

    def line(self) -> str:
        return f"{self.call} on {places(self.args)}"


Thunk = (
    KernelThunk
    | GemmThunk
    | RowBlocksThunk
    | ConvolutionThunk
    | FftThunk
    | LapackThunk
    | CopyThunk
    | CopiesThunk
    | RowCopiesThunk
    | WhileThunk
    | ConditionalThunk
    | RandomStateThunk
    | CollectiveThunk
    | DeviceNumberThunk
    | HostThunk
    | LibraryThunk
)
Sequence = tuple[Thunk, ...]


def walk(sequence: Sequence) -> Iterator[Thunk]:
    """Every thunk, those inside loops and branches too, in program order."""
    for thunk in sequence:
        yield thunk
        if isinstance(thunk, WhileThunk):
            yield from walk(thunk.condition)
            yield from walk(thunk.body)
        elif isinstance(thunk, ConditionalThunk):
            for branch in thunk.branches:
                yield from walk(branch)


def show(sequence: Sequence, indent: str = "") -> str:
    """The plan as text, a line per thunk."""
    lines: list[str] = []
    for t in sequence:
        lines.append(f"{indent}{t.line()}  // {t.source}")
        for heading, further, steps in t.inner():
            lines += [indent + heading] * bool(heading)
            lines += [show(steps, indent + further)] * bool(steps)
    return "\n".join(lines)
