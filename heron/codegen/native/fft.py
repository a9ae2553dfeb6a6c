"""Fourier transforms in the native program: one stage a dimension, its work items shared by the threads."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import ceil, log2, prod
from operator import mul
from typing import TYPE_CHECKING

from heron.codegen.native import fft_code
from heron.codegen.native.fft_code import DRIVER, Job
from heron.codegen.native.share import write_range
from heron.codegen.native.tables import write_table
from heron.hlo.ir.types import C64, F32, F64, ElementType

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import FftThunk

#: bytes of scratch a thread may take from its stack
_MOST_SCRATCH = 1 << 19
#: elements times the logarithm of the length that a thread does at a time, at least
_PORTION = 1 << 16


@dataclass(frozen=True, slots=True)
class Stage:
    """The transform of all lines along one dimension.

    ``origin``, ``target``: operand, out or scratch. Lines of ``length`` complex elements, of which ``read`` are read
    and ``written`` written; ``lines`` of them next to each other (``apart``: element by element), ``sets`` times.
    ``kind``: c2c, r2c or c2r.
    """

    origin: str
    target: str
    kind: str
    length: int
    lines: int
    sets: int
    apart: bool
    inverse: bool

    @property
    def read(self) -> int:
        return self.length + (self.kind == "c2r")

    @property
    def written(self) -> int:
        return self.length + (self.kind == "r2c")

    @property
    def elements(self) -> int:
        """Of a line, as a caller counts them."""
        return self.length if self.kind == "c2c" else 2 * self.length


def part_type(element: ElementType) -> ElementType:
    """The type of the parts of the complex numbers of a transform with such operands."""
    return F32 if element in (F32, C64) else F64


def stages(kind: str, lengths: tuple[int, ...], dims: tuple[int, ...]) -> list[Stage]:
    """The stages of a transform of the last dimensions of an operand of `dims`. A real one goes along the last
    dimension first, its inverse last.
    """
    last = len(dims) - 1
    inverse, is_real = kind.startswith("I"), kind.endswith("RFFT")
    # complex dimensions between the stages
    whole = (*dims[:-1], lengths[-1] // 2 + 1) if kind == "RFFT" else dims
    axes = [last, *range(last - 1, last - len(lengths), -1)]
    if kind == "IRFFT":
        axes = [*axes[1:], last]
    found: list[Stage] = []
    place = "operand"
    for axis in axes:
        length, inner, outer = dims[axis], prod(whole[axis + 1 :]), prod(whole[:axis])
        step = ("c2r" if inverse else "r2c") if is_real and axis == last else "c2c"
        if step != "c2c":
            length = lengths[-1] // 2
        target = "scratch" if kind == "IRFFT" and axis != last else "out"
        apart = axis != last
        found.append(
            Stage(place, target, step, length, inner if apart else outer, outer if apart else 1, apart, inverse)
        )
        place = target
    return found


def obstacle(kind: str, lengths: tuple[int, ...], dims: tuple[int, ...], element: ElementType) -> str | None:
    """Why there is no code for a transform; None when there is."""
    part = part_type(element)
    if kind.endswith("RFFT") and lengths[-1] % 2:
        return f"a real line of {lengths[-1]} elements has no middle"
    for stage in stages(kind, lengths, dims):
        if fft_code.factors(stage.length) is None:
            return f"{stage.length} has a prime factor above {max(fft_code.RADICES)}"
        if 2 * fft_code.scratch_bytes(stage.length, part) > _MOST_SCRATCH:
            return f"lines of {stage.length} elements, as many as a vector has lanes, do not stay in a cache"
        if 2 * stage.lines < fft_code.lanes(part):
            return f"{stage.lines} lines do not fill vectors"
    return None


def write_fft(w: ProgramWriter, t: FftThunk) -> None:
    """Every stage in turn."""
    if not prod(t.dims):
        return
    places = {"operand": w.pointer(t.operand), "out": w.pointer(t.out)}
    if t.scratch is not None:
        places["scratch"] = w.pointer(t.scratch)
    w.declare(DRIVER, f"void @{DRIVER}(ptr, i64, i64)", fft_code.driver_address)
    element = part_type(t.element_type)
    for stage in stages(t.kind, t.lengths, t.dims):
        groups = ceil(stage.lines / fft_code.lanes(element))
        work = stage.length * fft_code.lanes(element) * max(1.0, log2(stage.length))
        args = [places[stage.origin], places[stage.target], _job(w, stage, element, groups)]
        write_range(w, DRIVER, args, stage.sets * groups, max(1, round(_PORTION / work)))


def _job(w: ProgramWriter, s: Stage, element: ElementType, groups: int) -> str:
    """The table of a stage, see `fft_code.Job`."""
    size = 2 * element.byte_size
    near = s.lines if s.apart else 1  # complex elements from one of a line to the next
    steps = [size * (near if s.apart else n) for n in (s.read, s.written)]
    if s.kind == "r2c":
        steps[0] = size * s.length
    if s.kind == "c2r":
        steps[1] = size * s.length
    flips = [int(s.inverse and s.kind == "c2c"), int(s.inverse)]
    scale = 1 / s.elements if s.inverse else 1.0
    words: dict[Job, int | str] = dict.fromkeys(Job, 0)
    words |= {
        Job.LENGTH: s.length,
        Job.LANES: fft_code.lanes(element),
        Job.SCRATCH: fft_code.scratch_bytes(s.length, element),
        Job.LINES: s.lines,
        Job.GROUPS: groups,
        Job.FROM_STEP: steps[0],
        Job.TO_STEP: steps[1],
        Job.FROM_OUTER: size * s.read * near,
        Job.TO_OUTER: size * s.written * near,
        Job.READ: s.read,
        Job.WRITTEN: s.written,
        Job.READ_FLIPPED: flips[0],
        Job.WRITE_FLIPPED: flips[1],
        Job.SCALE: struct.unpack("<q", struct.pack("<d", scale))[0],
        Job.ROOTS_AT: _roots(w, s.length, s.length, element),
        Job.READ_AT: _piece(w, element, "read_apart" if s.apart else "read"),
        Job.WRITE_AT: _piece(w, element, "write_apart" if s.apart else "write"),
    }
    if s.kind != "c2c":
        words[Job.REAL_ROOTS_AT] = _roots(w, 2 * s.length, s.length + 1, element)
    if s.kind == "c2r":
        words[Job.JOIN_AT] = _piece(w, element, "join")
    if s.kind == "r2c":
        words[Job.SPLIT_AT] = _piece(w, element, "split")
    found = list(_passes(w, s.length, element))
    words |= {Job.PASSES: len(found) // 3, Job.PASSES_AT: write_table(w, "passes", found)}
    return write_table(w, "transform", [words[n] for n in Job])


def _passes(w: ProgramWriter, n: int, element: ElementType) -> Iterator[int | str]:
    factors = fft_code.factors(n)
    assert factors is not None
    for radix, done in zip(factors, accumulate(factors, mul), strict=True):
        yield _piece(w, element, radix)
        yield n // done
        yield done // radix


def _piece(w: ProgramWriter, element: ElementType, piece: str | int) -> str:
    name = fft_code.piece_name(element, piece)
    arguments = "ptr, ptr, i64, i64, ptr"
    if isinstance(piece, int):
        arguments = "ptr, ptr, ptr, i64, i64"
    elif piece in ("join", "split"):
        arguments = "ptr, ptr, ptr"
    w.declare(name, f"void @{name}({arguments})", partial(fft_code.piece_address, element, piece))
    return f"@{name}"


def _roots(w: ProgramWriter, n: int, count: int, element: ElementType) -> str:
    symbol = f"heron_roots_{element.name}_{n}_{count}"
    w.declared.variable(f"@{symbol} = external global i8")
    w.externals[symbol] = fft_code.roots(n, count, element).ctypes.data
    return f"@{symbol}"
