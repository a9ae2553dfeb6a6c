"""Fourier transforms in the native program: one stage a dimension, its work items shared by the threads."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate
from math import ceil, log2, prod
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.codegen.native import fft_alone, fft_chirp, fft_code
from heron.codegen.native.fft_code import DRIVER
from heron.codegen.native.fft_job import Job
from heron.codegen.native.fft_passes import LineVector, factors, vectors_for
from heron.codegen.native.fft_prime import passes
from heron.codegen.native.fft_tables import roots
from heron.codegen.native.share import write_range
from heron.codegen.native.tables import write_table
from heron.hlo.ir.types import C64, F32, F64, ElementType
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import FftThunk

#: bytes of scratch a thread may take from its stack
_MOST_SCRATCH = 1 << 21
#: the same where a line is alone: as the other lanes are idle, longer ones take more time than a scalar transform
_MOST_SCRATCH_ALONE = 1 << 19
#: elements times the logarithm of the length that a thread does at a time, at least
_PORTION = 1 << 16


@dataclass(frozen=True, slots=True)
class Stage:
    """The transform of all lines along one dimension.

    ``origin``, ``target``: operand, out or scratch. Lines of ``elements``, as a caller counts them; ``lines`` of them
    next to each other (``apart``: element by element), ``sets`` times.
    ``kind``: c2c, r2c or c2r; r2c and c2r of an even length go through complex lines of half the length.
    """

    origin: str
    target: str
    kind: str
    elements: int
    lines: int
    sets: int
    apart: bool
    inverse: bool

    @property
    def length(self) -> int:
        """Complex elements of a line between the passes."""
        return self.elements // 2 if self.is_halved else self.elements

    @property
    def is_halved(self) -> bool:
        return self.kind != "c2c" and self.elements % 2 == 0

    @property
    def read(self) -> int:
        return self._side("c2r")

    @property
    def written(self) -> int:
        return self._side("r2c")

    def _side(self, halved: str) -> int:
        """Elements on one side of the transform, which has half a line and its middle where the kind is that."""
        return self.elements // 2 + 1 if self.kind == halved else self.length


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
            length = lengths[-1]
        target = "scratch" if kind == "IRFFT" and axis != last else "out"
        apart = axis != last
        found.append(
            Stage(place, target, step, length, inner if apart else outer, outer if apart else 1, apart, inverse)
        )
        place = target
    return found


@dataclass(frozen=True, slots=True)
class Form:
    """The way in which lines of a stage lie in vectors: side by side, or each by itself with its elements side by side.

    ``length``: of the passes.
    """

    vector: LineVector
    length: int
    is_alone: bool = False

    @property
    def lanes(self) -> int:
        """Lines that are transformed at a time."""
        return 1 if self.is_alone else self.vector.lanes

    @property
    def scratch(self) -> int:
        """The bytes of one of the arrays that lines lie in between the passes."""
        return fft_code.scratch_bytes(self.length // (self.vector.lanes if self.is_alone else 1), self.vector)


def obstacle(kind: str, lengths: tuple[int, ...], dims: tuple[int, ...], element: ElementType) -> str | None:
    """Why there is no code for a transform; None when there is."""
    part = part_type(element)
    for stage in stages(kind, lengths, dims):
        form = form_of(stage, part)
        if 2 * form.scratch > _MOST_SCRATCH:
            return f"{form.lanes} lines of {stage.length} elements do not stay in a cache"
        if stage.lines == 1 and not form.is_alone and 2 * form.scratch > _MOST_SCRATCH_ALONE:
            return f"a vector with one line of {stage.length} elements is slower than a scalar transform"
    return None


def form_of(stage: Stage, element: ElementType) -> Form:
    """Each line by itself where, side by side, three lanes of four would be empty, or lines would not stay in a
    cache."""
    n = stage.length
    vectors = vectors_for(element, stage.lines)
    forms = [Form(v, n if passes(n, v) is not None else fft_chirp.room(n)) for v in vectors]
    together = next((form for form in forms if 2 * form.scratch <= _MOST_SCRATCH), forms[-1])
    alone = _alone(stage, element)
    if alone is None or 2 * alone.scratch > _MOST_SCRATCH:
        return together
    return alone if alone.vector.lanes >= 4 * min(stage.lines, together.lanes) else together


def _alone(stage: Stage, element: ElementType) -> Form | None:
    """The form of each line by itself, where its elements lie next to each other."""
    n = stage.length
    if stage.apart:
        return None
    vector = fft_alone.vector_of(n, element)
    if vector is not None and (stage.kind == "c2c" or stage.is_halved):
        return Form(vector, n, is_alone=True)
    widest = vectors_for(element, n)[0]
    joins = stage.is_halved or stage.kind == "c2r"
    if factors(n) is not None or joins or n < widest.lanes:
        return None
    return Form(widest, fft_chirp.room(n, widest.lanes), is_alone=True)


def write_fft(w: ProgramWriter, t: FftThunk) -> None:
    """Every stage in turn."""
    if not prod(t.dims):
        return
    places = {"operand": w.pointer(t.operand), "out": w.pointer(t.out)}
    if t.scratch is not None:
        places["scratch"] = w.pointer(t.scratch)
    w.declare(DRIVER, f"void @{DRIVER}(ptr, i64, i64)", fft_code.driver_address)
    element = part_type(t.element_type)
    for stage in stages(t.fft_type, t.lengths, t.dims):
        form = form_of(stage, element)
        groups = ceil(stage.lines / form.lanes)
        work = stage.length * form.lanes * max(1.0, log2(stage.length))
        args = [places[stage.origin], places[stage.target], _job(w, stage, form, groups)]
        write_range(w, DRIVER, args, stage.sets * groups, max(1, round(_PORTION / work)))


def _job(w: ProgramWriter, s: Stage, form: Form, groups: int) -> str:
    """The table of a stage, see `fft_job.Job`."""
    element = form.vector.element
    size = 2 * element.byte_size
    near = s.lines if s.apart else 1  # complex elements from one of a line to the next
    steps = [size * (near if s.apart else n) for n in (s.read, s.written)]
    if s.kind == "r2c":
        steps[0] = element.byte_size * s.elements
    if s.kind == "c2r":
        steps[1] = element.byte_size * s.elements
    # where halves are put together, parts are exchanged then
    flips = [int(s.inverse and not s.is_halved), int(s.inverse)]
    scale = 1 / s.elements if s.inverse else 1.0
    words: dict[Job, int | str] = dict.fromkeys(Job, 0)
    words |= {
        Job.LENGTH: s.length,
        Job.LANES: form.lanes,
        Job.SCRATCH: form.scratch,
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
    }
    words |= {job: _piece(w, form.vector, piece) for job, piece in _pieces(s, form).items()}
    if s.is_halved:
        words[Job.REAL_ROOTS_AT] = _numbers(w, "roots", roots, 2 * s.length, s.length + 1, element)
    found = list(_passes(w, s.length, form))
    words |= {Job.PASSES: len(found) // 4, Job.PASSES_AT: write_table(w, "passes", found)}
    return write_table(w, "transform", [words[n] for n in Job])


def _pieces(s: Stage, form: Form) -> dict[Job, str]:
    """The functions around the passes."""
    if s.apart:
        return {Job.READ_AT: "read_apart", Job.WRITE_AT: "write_apart"}
    match s.kind, s.is_halved:
        case "r2c", True:
            pieces = {Job.READ_AT: "read", Job.SPLIT_AT: "split", Job.WRITE_AT: "write"}
        case "r2c", False:
            pieces = {Job.READ_AT: "read_real", Job.WRITE_AT: "write"}
        case "c2r", True:
            pieces = {Job.READ_AT: "read", Job.JOIN_AT: "join", Job.WRITE_AT: "write"}
        case "c2r", False:
            pieces = {Job.READ_AT: "read", Job.JOIN_AT: "mirror", Job.WRITE_AT: "write_real"}
        case _:
            pieces = {Job.READ_AT: "read", Job.WRITE_AT: "write"}
    if not form.is_alone:
        return pieces
    pieces = {job: f"{piece}_alone" for job, piece in pieces.items()}
    return pieces | {Job.READ_AT: "copy_alone"} if Job.JOIN_AT in pieces else pieces


def _passes(w: ProgramWriter, n: int, form: Form) -> Iterator[int | str]:
    """Function, two sizes and table of each pass."""
    vector, length = form.vector, form.length
    if n == length:
        yield from _butterflies(w, form)
        return
    kind = "_alone" if form.is_alone else ""
    chirp = _numbers(w, "chirp", fft_chirp.chirp, n, vector.element)
    response = _numbers(w, "response", fft_chirp.response, n, length, vector.element)
    yield from (_piece(w, vector, f"enter{kind}"), n, length, chirp)
    yield from _butterflies(w, form)
    yield from (_piece(w, vector, f"convolve{kind}"), n, length, response)
    yield from _butterflies(w, form)
    yield from (_piece(w, vector, f"leave{kind}"), n, length, chirp)


def _butterflies(w: ProgramWriter, form: Form) -> Iterator[int | str]:
    vector, element = form.vector, form.vector.element
    n = form.length // vector.lanes if form.is_alone else form.length
    found = passes(n, vector)
    assert found is not None
    table = _numbers(w, "roots", roots, n, n, element)
    for radix, done in zip(found, accumulate(found, mul), strict=True):
        yield from (_piece(w, vector, radix), n // done, done // radix, table)
    if form.is_alone:
        turns = _numbers(w, "turns", fft_alone.turns, form.length, vector.lanes, element)
        yield from (_piece(w, vector, "gather_alone"), n, 0, turns)


def _piece(w: ProgramWriter, form: LineVector, piece: str | int) -> str:
    name = fft_code.piece_name(form, piece)
    arguments = "ptr, ptr, i64, i64, ptr"
    if piece in (*fft_code.INSIDE, *fft_alone.INSIDE):
        arguments = "ptr, ptr, ptr"
    elif piece not in (*fft_code.PIECES, *fft_alone.MOVES):
        arguments = "ptr, ptr, ptr, i64, i64"
    w.declare(name, f"void @{name}({arguments})", partial(fft_code.piece_address, form, piece))
    return f"@{name}"


def _numbers(w: ProgramWriter, kind: str, make: Callable[..., np.ndarray], *form: Any) -> str:
    """The symbol of a table of numbers, which is made once in a process."""
    symbol = f"heron_{kind}_{'_'.join(str(getattr(f, 'name', f)) for f in form)}"
    w.declared.variable(f"@{symbol} = external global i8")
    w.externals[symbol] = make(*form).ctypes.data
    return f"@{symbol}"
