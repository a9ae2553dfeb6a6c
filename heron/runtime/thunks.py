"""Thunks: the steps a compiled program is made of, as plain data.

A thunk names buffers by `Slice` (allocation, offset, size). What runs them differs by machine: on the CPU the whole
sequence becomes one native function (`codegen/native/program.py`), on the simulated GPU it is walked step by step
(`runtime/sim/executable.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from heron.analysis.fusion.row_blocks import RowBlocks
from heron.buffers.assignment import Slice
from heron.hlo.ir.types import ElementType
from heron.runtime.collectives.exchange import Piece, Reduction, Way
from heron.runtime.fortran import Call, Steps
from heron.runtime.library_call import Descriptor
from heron.runtime.strided import StridedProducts, Tiling

#: the library of thunks that do linear algebra on the CPU
LAPACK = "scipy.linalg.lapack"


@dataclass(frozen=True, slots=True)
class KernelThunk:
    """Run one of heron's own kernels. ``kernel`` indexes the program's kernel table."""

    kernel: str
    args: tuple[Slice, ...]
    source: str


@dataclass(frozen=True, slots=True)
class GemmThunk:
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


@dataclass(frozen=True, slots=True)
class RowBlocksThunk:
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


@dataclass(frozen=True, slots=True)
class ConvolutionThunk:
    """A convolution by matrix products on parts of its operands, summed into the result, or by sums in registers."""

    lhs: Slice
    rhs: Slice
    out: Slice
    products: StridedProducts | Tiling
    element_type: ElementType
    source: str


@dataclass(frozen=True, slots=True)
class FftThunk:
    """A Fourier transform of the last ``len(lengths)`` dimensions of a row-major operand of `dims`; ``kind`` as HLO has
    it. ``scratch``: as large as the operand, where the kind needs it.
    """

    operand: Slice
    out: Slice
    kind: str
    lengths: tuple[int, ...]
    dims: tuple[int, ...]
    element_type: ElementType
    source: str
    scratch: Slice | None = None


@dataclass(frozen=True, slots=True)
class LapackThunk:
    """Do the steps to each matrix of a batch. ``strides``: the bytes from a matrix of an array to the next."""

    steps: Steps
    args: tuple[Slice, ...]
    strides: tuple[int, ...]
    batch: int
    library: str
    source: str


@dataclass(frozen=True, slots=True)
class CopyThunk:
    """Copy ``target.size`` bytes; the two slices never overlap partly."""

    origin: Slice
    target: Slice
    source: str


@dataclass(frozen=True, slots=True)
class WhileThunk:
    """Run ``condition``; while the byte at ``predicate`` is not 0, run ``body`` and then ``condition`` again.

    ``trips``: how often ``body`` runs, where whoever drives the loop counts; ``condition`` is empty then.
    """

    condition: Sequence
    predicate: Slice
    body: Sequence
    source: str
    trips: int | None = None


@dataclass(frozen=True, slots=True)
class ConditionalThunk:
    """Run one branch: by a pred (nonzero → branch 0, zero → branch 1) or an s32 (out of range → the last)."""

    selector: Slice
    by_predicate: bool
    branches: tuple[Sequence, ...]
    source: str


@dataclass(frozen=True, slots=True)
class RandomStateThunk:
    """Write the program's random state, its low word first, and advance it by ``delta``.

    Every executable has one state, which starts at ``FIRST_STATE`` and lives as long as it.
    """

    out: Slice
    delta: int
    source: str


@dataclass(frozen=True, slots=True)
class CollectiveThunk:
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


@dataclass(frozen=True, slots=True)
class DeviceNumberThunk:
    """Write a number of the device that runs the program as u32: its partition's or its replica's."""

    out: Slice
    is_partition: bool
    source: str


@dataclass(frozen=True, slots=True)
class HostThunk:
    """Call a Python function on NumPy views of the slices (a library routine with no native binding here).

    The last ``results`` of them it writes, the others it reads.
    """

    function: Callable[..., None]
    args: tuple[Slice, ...]
    types: tuple[tuple[np.dtype, tuple[int, ...]], ...]
    library: str
    source: str
    results: int = 1


@dataclass(frozen=True, slots=True)
class LibraryThunk:
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


Thunk = (
    KernelThunk
    | GemmThunk
    | RowBlocksThunk
    | ConvolutionThunk
    | FftThunk
    | LapackThunk
    | CopyThunk
    | WhileThunk
    | ConditionalThunk
    | RandomStateThunk
    | CollectiveThunk
    | DeviceNumberThunk
    | HostThunk
    | LibraryThunk
)
Sequence = tuple[Thunk, ...]


def kind_of(t: Thunk) -> str:
    """The kind of a thunk in summaries: kernel, gemm, copy, while, …, or the library's name."""
    match t:
        case HostThunk() | LapackThunk():
            return t.library
        case LibraryThunk():
            return t.call.library
        case RandomStateThunk():
            return "random state"
        case CollectiveThunk():
            return t.opcode
        case DeviceNumberThunk():
            return "device number"
        case RowBlocksThunk():
            return "row blocks"
        case _:
            return type(t).__name__.removesuffix("Thunk").lower()


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


def place(s: Slice) -> str:
    """A slice as ``allocation[offset:end]``."""
    return f"#{s.allocation}[{s.offset}:{s.offset + s.size}]"


def show(sequence: Sequence, indent: str = "") -> str:
    """The plan as text, a line per thunk."""
    lines: list[str] = []
    for t in sequence:
        match t:
            case KernelThunk():
                lines.append(f"{indent}kernel {t.kernel}({', '.join(map(place, t.args))})  // {t.source}")
            case GemmThunk():
                shape = f"{t.batch}x{t.m}x{t.n}x{t.k} {t.element_type}"
                flags = " lhs^T" * t.lhs_transposed + " rhs^T" * t.rhs_transposed
                product = f"{place(t.out)} {'+=' if t.adds else '='} {place(t.lhs)} @ {place(t.rhs)}"
                lines.append(f"{indent}gemm {shape}{flags} {product}  // {t.source}")
            case RowBlocksThunk():
                lines.append(f"{indent}{t.cut}:  // {t.source}")
                lines.append(show(t.steps, indent + "    "))
            case ConvolutionThunk():
                places = f"{place(t.out)} = {place(t.lhs)} * {place(t.rhs)}"
                lines.append(f"{indent}convolution {t.products.summary} {t.element_type} {places}  // {t.source}")
            case FftThunk():
                lengths = "x".join(map(str, t.lengths))
                places = f"{place(t.out)} = {place(t.operand)}"
                places += "" if t.scratch is None else f", scratch {place(t.scratch)}"
                lines.append(f"{indent}{t.kind} {lengths} {t.element_type} {places}  // {t.source}")
            case LapackThunk():
                calls = ", ".join(step.routine for step in t.steps.steps if isinstance(step, Call))
                lines.append(f"{indent}{calls} x{t.batch} on {', '.join(map(place, t.args))}  // {t.source}")
            case CopyThunk():
                lines.append(f"{indent}copy {place(t.target)} = {place(t.origin)}  // {t.source}")
            case WhileThunk():
                until = place(t.predicate) if t.trips is None else f"{t.trips} times"
                lines.append(f"{indent}while {until}  // {t.source}")
                lines.append(show(t.condition, indent + "  ? "))
                lines.append(show(t.body, indent + "    "))
            case ConditionalThunk():
                lines.append(f"{indent}conditional {place(t.selector)}  // {t.source}")
                for n, branch in enumerate(t.branches):
                    lines.append(f"{indent}  branch {n}:")
                    lines.append(show(branch, indent + "    "))
            case RandomStateThunk():
                lines.append(f"{indent}random state {place(t.out)}, then += {t.delta}  // {t.source}")
            case CollectiveThunk():
                results, operands = (", ".join(map(place, x)) for x in (t.results, t.operands))
                members = f"{len(t.groups)} x {len(t.groups[0])} devices"
                lines.append(f"{indent}{t.opcode} {members} {results} = {operands}  // {t.source}")
            case DeviceNumberThunk():
                kind = "partition" if t.is_partition else "replica"
                lines.append(f"{indent}{kind} number {place(t.out)}  // {t.source}")
            case LibraryThunk():
                places = ", ".join(map(place, t.args))
                lines.append(f"{indent}{t.call} on {places}  // {t.source}")
            case HostThunk():
                places = ", ".join(map(place, t.args))
                lines.append(f"{indent}{t.library} {t.function}({places})  // {t.source}")
    return "\n".join(line for line in lines if line)
