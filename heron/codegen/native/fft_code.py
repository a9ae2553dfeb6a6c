"""Fourier transforms of many lines at once: a vector has the same element of neighbouring lines.

A work item takes as many lines as a vector has lanes into scratch memory, real and imaginary parts apart, goes through
them once for each factor of the length, and writes them out. Where there are few lines, vectors are narrow. Lines that
lie one after the other are turned on the way in and out; neighbours along another dimension lie as vectors already. A
real line of even length is a complex one of half the length, taken apart afterwards (put together before); one of odd
length is one without imaginary parts.

The passes are Stockham's: out of place, the result in order with no bit reversal. With s the product of the factors
before and m what is left after factor r, element j of a butterfly is x[q + s (p + j m)], its result y[q + s (r p + j)].
An inverse transform is one with real and imaginary parts exchanged on both ways.

Source: C. Van Loan, Computational Frameworks for the Fast Fourier Transform, SIAM 1992, sections 1.7 and 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.text import Function
from heron.codegen.native import common_code
from heron.codegen.native.fft_alone import ALONE_PIECES, AloneWriter
from heron.codegen.native.fft_chirp import CHIRP_PASSES, ChirpWriter
from heron.codegen.native.fft_job import Job, JobWriter
from heron.codegen.native.fft_passes import RADICES, LineVector, PassWriter
from heron.codegen.native.fft_prime import PrimePassWriter

DRIVER = "heron_fft"
#: functions of one element type. Lines that lie one after the other, and those next to each other, between memory and
#: scratch: ``void f(ptr job, ptr array, i64 first, i64 lines, ptr scratch)``; real lines put together and taken apart,
#: and the second half of a line that becomes real: ``void f(ptr job, ptr from, ptr to)``
PIECES = ("read", "write", "read_apart", "write_apart", "read_real", "write_real", "join", "split", "mirror")
#: those from scratch to scratch
INSIDE = ("join", "split", "mirror")


def scratch_bytes(n: int, form: LineVector) -> int:
    """Of an array for lines of `n` complex elements; what is read last may be a whole block too long."""
    return (2 * n + 2 * form.lanes + 2) * form.byte_size


def driver_address(cache: CodeCache | None) -> int:
    """The address of ``void heron_fft(ptr args, i64 lo, i64 hi)``, which does work items: ``args`` points to the arrays
    from and to, and a job.
    """
    return common_code.address_of(DRIVER, lambda: _DriverWriter().text(), cache=cache, shaped=True)


def piece_name(form: LineVector, piece: str | int) -> str:
    """The symbol of one of `PIECES`, or of the pass of a factor."""
    return f"heron_fft_{form}_{piece}"


def piece_address(form: LineVector, piece: str | int, cache: CodeCache | None) -> int:
    """The address of one of `PIECES`, or of the pass of a factor: ``void f(ptr from, ptr to, ptr roots, i64 m,
    i64 s)``.
    """
    name = piece_name(form, piece)
    return common_code.address_of(name, lambda: _piece_text(form, piece), cache=cache, shaped=True)


def _piece_text(form: LineVector, piece: str | int) -> str:
    if isinstance(piece, int):
        writer = PassWriter if piece in RADICES else PrimePassWriter
        return writer(form, piece).text(piece_name(form, piece))
    if piece in ALONE_PIECES:
        return AloneWriter(form).text(piece, piece_name(form, piece))
    if piece in CHIRP_PASSES:
        return ChirpWriter(form).text(piece, piece_name(form, piece))
    return _PieceWriter(form).text(piece)


class _DriverWriter(Function):
    """The function that does work items: from memory to scratch, the passes, and back."""

    def text(self) -> str:
        origin, target, self.job = [self.value(f"load ptr, ptr {self.at('%args', n, 'ptr')}") for n in range(3)]
        size = self.word(Job.SCRATCH)
        scratch = [self.value(f"alloca i8, i64 {size}, align 64") for _ in range(2)]
        self.here, self.there = self.slot("ptr"), self.slot("ptr")
        with self.loop("%lo", "%hi") as item:
            self.line(f"store ptr {scratch[0]}, ptr {self.here}")
            self.line(f"store ptr {scratch[1]}, ptr {self.there}")
            groups, lanes = self.word(Job.GROUPS), self.word(Job.LANES)
            outer, group = self.integer("udiv", item, groups), self.integer("urem", item, groups)
            first = self.integer("mul", group, lanes)
            count = self.least(lanes, self.integer("sub", self.word(Job.LINES), first))
            begin = self.at(origin, self.integer("mul", outer, self.word(Job.FROM_OUTER)), "i8")
            end = self.at(target, self.integer("mul", outer, self.word(Job.TO_OUTER)), "i8")
            self._move(Job.READ_AT, begin, first, count)
            self._apply(Job.JOIN_AT)
            self._passes()
            self._apply(Job.SPLIT_AT)
            self._move(Job.WRITE_AT, end, first, count)
        return self.function(f"void @{DRIVER}(ptr %args, i64 %lo, i64 %hi) nounwind")

    def word(self, n: Job, kind: str = "i64") -> str:
        return self.value(f"load {kind}, ptr {self.at(self.job, int(n), 'i64')}, align 8")

    def _get(self, slot: str) -> str:
        return self.value(f"load ptr, ptr {slot}")

    def _move(self, function: Job, array: str, first: str, count: str) -> None:
        args = f"ptr {self.job}, ptr {array}, i64 {first}, i64 {count}, ptr {self._get(self.here)}"
        self.line(f"call void {self.word(function, 'ptr')}({args})")

    def _apply(self, function: Job) -> None:
        found = self.word(function, "ptr")
        with self.when(self.value(f"icmp ne ptr {found}, null")):
            self.line(f"call void {found}(ptr {self.job}, ptr {self._get(self.here)}, ptr {self._get(self.there)})")
            self._exchange()

    def _exchange(self) -> None:
        a, b = self._get(self.here), self._get(self.there)
        self.line(f"store ptr {b}, ptr {self.here}")
        self.line(f"store ptr {a}, ptr {self.there}")

    def _passes(self) -> None:
        passes = self.word(Job.PASSES_AT, "ptr")
        with self.loop(0, self.word(Job.PASSES)) as n:
            entry = self.at(passes, self.integer("mul", n, 4), "i64")
            function = self.value(f"load ptr, ptr {entry}, align 8")
            table = self.value(f"load ptr, ptr {self.at(entry, 3, 'i64')}, align 8")
            m, s = (self.value(f"load i64, ptr {self.at(entry, k, 'i64')}, align 8") for k in (1, 2))
            args = f"ptr {self._get(self.here)}, ptr {self._get(self.there)}, ptr {table}, i64 {m}, i64 {s}"
            self.line(f"call void {function}({args})")
            self._exchange()


class _PieceWriter(JobWriter):
    """The functions between memory and scratch, and those of real lines."""

    def __init__(self, form: LineVector) -> None:
        super().__init__(form)
        self.form = form

    def text(self, piece: str) -> str:
        write = {
            "read": self._read,
            "write": self._write,
            "read_apart": self._read_apart,
            "write_apart": self._write_apart,
            "read_real": self._read_real,
            "write_real": self._write_real,
            "join": self._join,
            "split": self._split,
            "mirror": self._mirror,
        }
        write[piece]()
        arguments = "ptr %job, ptr %array, i64 %first, i64 %count, ptr %scratch"
        if piece in INSIDE:
            arguments = "ptr %job, ptr noalias %from, ptr noalias %to"
        return self.function(f"void @{piece_name(self.form, piece)}({arguments}) nounwind")

    # -- lines one after the other -----------------------------------------------------------------------------------
    def _read(self) -> None:
        flipped = self.word(Job.READ_FLIPPED)
        with self._columns(self.integer("mul", self.word(Job.READ), 2)) as columns:
            for n, column in columns:
                self.put_vector(column, self.part("%scratch", self.flip(n, flipped)))

    def _read_real(self) -> None:
        with self._columns(self.word(Job.READ)) as columns:
            for n, column in columns:
                self.put((column, "zeroinitializer"), "%scratch", n)

    @contextmanager
    def _columns(self, length: str) -> Iterator[Iterator[tuple[str, str]]]:
        """Blocks of every line, turned: place and vector of each number. Lanes without a line get the last one."""
        step, last = self.word(Job.FROM_STEP), self.integer("sub", "%count", 1)
        lines = []
        for n in range(self.lanes):
            line = self.integer("add", "%first", self.least(n, last))
            lines.append(self.bytes("%array", self.integer("mul", line, step)))
        with self.loop(0, length, self.lanes) as start:
            mask = self.mask(self.integer("sub", length, start), self.lanes)
            rows = [self.masked_load(self.at(line, start, self.scalar), mask, self.lanes) for line in lines]
            yield ((self.integer("add", start, n), column) for n, column in enumerate(self.turned(rows)))

    def _write(self) -> None:
        flipped = self.word(Job.WRITE_FLIPPED)
        self._put_columns(self.integer("mul", self.word(Job.WRITTEN), 2), lambda n: self.flip(n, flipped))

    def _write_real(self) -> None:
        flipped = self.word(Job.WRITE_FLIPPED)
        self._put_columns(self.word(Job.WRITTEN), lambda n: self.flip(self.integer("mul", n, 2), flipped))

    def _put_columns(self, length: str, place: Callable[[str], str]) -> None:
        """Numbers of all lines, each at its place in scratch, to blocks of every line."""
        step, scale = self.word(Job.TO_STEP), self.scale()
        with self.loop(0, length, self.lanes) as start:
            mask = self.mask(self.integer("sub", length, start), self.lanes)
            columns = []
            for n in range(self.lanes):
                part = self.vector_at(self.part("%scratch", place(self.integer("add", start, n))))
                columns.append(self.real("fmul", part, scale))
            for n, row in enumerate(self.turned(columns)):
                with self.when(self.value(f"icmp ult i64 {n}, %count")):
                    line = self.bytes("%array", self.integer("mul", self.integer("add", "%first", n), step))
                    self.masked_store(row, self.at(line, start, self.scalar), mask, self.lanes)

    # -- lines next to each other ------------------------------------------------------------------------------------
    def _read_apart(self) -> None:
        step, flipped = self.word(Job.FROM_STEP), self.word(Job.READ_FLIPPED)
        start = self.at("%array", self.integer("mul", "%first", 2), self.scalar)
        with self.loop(0, self.word(Job.READ)) as k:
            pair = self.masked_pairs(self.bytes(start, self.integer("mul", k, step)), "%count")
            for n, part in enumerate(pair):
                at = self.integer("add", self.integer("mul", k, 2), n)
                self.put_vector(part, self.part("%scratch", self.flip(at, flipped)))

    def _write_apart(self) -> None:
        step, flipped, scale = self.word(Job.TO_STEP), self.word(Job.WRITE_FLIPPED), self.scale()
        start = self.at("%array", self.integer("mul", "%first", 2), self.scalar)
        with self.loop(0, self.word(Job.WRITTEN)) as k:
            parts = []
            for n in range(2):
                at = self.flip(self.integer("add", self.integer("mul", k, 2), n), flipped)
                parts.append(self.real("fmul", self.vector_at(self.part("%scratch", at)), scale))
            place = self.bytes(start, self.integer("mul", k, step))
            self.put_masked_pairs((parts[0], parts[1]), place, "%count")

    # -- real lines --------------------------------------------------------------------------------------------------
    def _split(self) -> None:
        """From the transform of a line taken as complex numbers to that of the line: what is even in it is that of its
        even elements, what is odd that of the others, which go in turned.
        """
        half, table = self.word(Job.LENGTH), self.word(Job.REAL_ROOTS_AT, "ptr")
        self.put(self.pair("%from", "0"), "%from", half)  # it goes round
        with self.loop(0, self.integer("add", half, 1)) as k:
            a, b, w = self.pair("%from", k), self.pair("%from", self.integer("sub", half, k)), self.root(table, k)
            self.put(self.split_pair(a, b, w), "%to", k)

    def _join(self) -> None:
        """The way back of `_split`, times two and real and imaginary parts exchanged. The ends are real."""
        half, table = self.word(Job.LENGTH), self.word(Job.REAL_ROOTS_AT, "ptr")
        for end in ("0", half):
            self.put((self.pair("%from", end)[0], "zeroinitializer"), "%from", end)
        with self.loop(0, half) as k:
            a, b, w = self.pair("%from", k), self.pair("%from", self.integer("sub", half, k)), self.root(table, k)
            self.put(self.join_pair(a, b, w), "%to", k)

    def _mirror(self) -> None:
        """The second half of a line of odd length that becomes real: the conjugates of the first, parts exchanged."""
        length = self.word(Job.LENGTH)
        self.put(("zeroinitializer", self.pair("%from", "0")[1]), "%to", "0")
        with self.loop(1, self.word(Job.READ)) as k:
            z = self.pair("%from", k)
            self.put(z, "%to", k)
            other = self.value(f"fneg {self.vector} {z[0]}"), z[1]
            self.put(other, "%to", self.integer("sub", length, k))
