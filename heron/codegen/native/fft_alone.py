"""Fourier transforms of one line at a time: a vector has neighbouring elements of it.

A line of n elements is L lines of m = n / L elements, where L is the number of lanes: lane l has the elements l, L + l,
2 L + l and so on. The passes go through these as through any L lines. One more pass puts them together: element
k + m c of the result is the sum over l of ``w[n]^(k l) x[l][k]`` times ``w[L]^(l c)``, a butterfly of L numbers. It is
done for L neighbouring k at a time, whose vectors are turned before. From there on the line lies in scratch as it does
in memory, element after element, behind room for a vector.

Source: C. Van Loan, Computational Frameworks for the Fast Fourier Transform, SIAM 1992, section 3.3.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from heron.codegen.native.fft_job import Job, JobWriter
from heron.codegen.native.fft_passes import Butterflies, Complex, LineVector, factors, vectors_for
from heron.codegen.native.fft_tables import pairs_of, roots
from heron.hlo.ir.types import ElementType

#: between memory and scratch, and within scratch, as in `fft_code.PIECES`; and the passes: the last one, and those of a
#: convolution with a chirp
MOVES = ("read_alone", "read_real_alone", "copy_alone", "write_alone")
INSIDE = ("split_alone", "join_alone")
PASSES = ("gather_alone", "enter_alone", "convolve_alone", "leave_alone")
ALONE_PIECES = (*MOVES, *INSIDE, *PASSES)


def vector_of(n: int, element: ElementType) -> LineVector | None:
    """The widest vector that a line of `n` elements can be spread over and that the last pass fills; None where there
    is none."""
    if factors(n) is None:
        return None
    return next((v for v in vectors_for(element, n) if n % v.lanes == 0 and n >= v.lanes**2), None)


@cache
def turns(n: int, lanes: int, element: ElementType) -> np.ndarray:
    """``exp(-2 pi i k l / n)`` for each k and lane l: the real parts of all lanes, then the imaginary ones."""
    k, lane = np.arange(n // lanes)[:, None, None], np.arange(lanes)
    return pairs_of(roots(n, n, element).reshape(n, 2)[k * lane % n, [[0], [1]]], element)


class AloneWriter(JobWriter, Butterflies):
    """The functions of `ALONE_PIECES`. A line is spread over the lanes as it is read, or as its halves are joined."""

    def text(self, piece: str, name: str) -> str:
        write = {
            "read_alone": self._read,
            "read_real_alone": self._read_real,
            "copy_alone": self._copy,
            "write_alone": self._write,
            "split_alone": self._split,
            "join_alone": self._join,
            "gather_alone": self._gather,
            "enter_alone": self._enter,
            "convolve_alone": self._convolve,
            "leave_alone": self._leave,
        }
        write[piece]()
        arguments = "ptr noalias %from, ptr noalias %to, ptr noalias %table, i64 %m, i64 %s"
        if piece in INSIDE:
            arguments = "ptr %job, ptr noalias %from, ptr noalias %to"
        elif piece in MOVES:
            arguments = "ptr %job, ptr %array, i64 %first, i64 %count, ptr %scratch"
        return self.function(f"void @{name}({arguments}) nounwind")

    # -- memory --------------------------------------------------------------------------------------------------------
    def _read(self) -> None:
        flipped, read = self.word(Job.READ_FLIPPED), self.word(Job.READ)
        line = self.bytes("%array", self.integer("mul", "%first", self.word(Job.FROM_STEP)))
        with self.loop(0, read, self.lanes) as start:
            for n, part in enumerate(self._pairs(line, start, read)):
                self.put_vector(part, self._place(start, n, flipped))

    def _read_real(self) -> None:
        read = self.word(Job.READ)
        line = self.bytes("%array", self.integer("mul", "%first", self.word(Job.FROM_STEP)))
        with self.loop(0, read, self.lanes) as start:
            mask = self.mask(self.integer("sub", read, start), self.lanes)
            part = self.masked_load(self.at(line, start, self.scalar), mask, self.lanes)
            self.put((part, "zeroinitializer"), "%scratch", self._block(start))

    def _place(self, start: str, n: int, flipped: str) -> str:
        """The address in scratch of a part of the elements from `start` on."""
        at = self.integer("add", self.integer("mul", self._block(start), 2), n)
        return self.part("%scratch", self.flip(at, flipped))

    def _block(self, start: str) -> str:
        """The number of the vector that begins with element `start`."""
        return self.integer("udiv", start, self.lanes)

    def _copy(self) -> None:
        line = self.bytes("%array", self.integer("mul", "%first", self.word(Job.FROM_STEP)))
        size = self.integer("mul", self.word(Job.READ), 2 * self.element.byte_size)
        self.copy(self._in_order("%scratch"), line, size)

    def _write(self) -> None:
        written, scale = self.word(Job.WRITTEN), self.scale()
        flipped = self.value(f"icmp ne i64 {self.word(Job.WRITE_FLIPPED)}, 0")
        line = self.bytes("%array", self.integer("mul", "%first", self.word(Job.TO_STEP)))
        with self.loop(0, written, self.lanes) as start:
            re, im = (
                self.real("fmul", part, scale) for part in self._pairs(self._in_order("%scratch"), start, written)
            )
            z = self.select(flipped, im, re, self.vector), self.select(flipped, re, im, self.vector)
            self._put_pairs(z, line, start, written)

    def _in_order(self, scratch: str) -> str:
        """The place in scratch of a line that has been put together."""
        return self.at(scratch, 2 * self.lanes, self.scalar)

    def _pairs(self, array: str, start: str, end: str) -> Complex:
        """A vector of elements of an array of complex numbers; zeros from `end` on."""
        place = self.at(array, self.integer("mul", start, 2), self.scalar)
        return self.masked_pairs(place, self.integer("sub", end, start))

    def _put_pairs(self, z: Complex, array: str, start: str, end: str) -> None:
        """A vector to elements of an array of complex numbers, up to `end`."""
        place = self.at(array, self.integer("mul", start, 2), self.scalar)
        self.put_masked_pairs(z, place, self.integer("sub", end, start))

    # -- the last pass -------------------------------------------------------------------------------------------------
    def _gather(self) -> None:
        line = self._in_order("%to")
        with self.loop(0, "%m", self.lanes) as first:
            numbers = [
                self.least(self.integer("add", first, n), self.integer("sub", "%m", 1)) for n in range(self.lanes)
            ]
            turned = [self.mul(self.pair("%from", k), self.pair("%table", k)) for k in numbers]
            parts = [self.turned([z[n] for z in turned]) for n in range(2)]
            for c, y in enumerate(self.butterfly(list(zip(*parts, strict=True)))):
                begin = self.integer("mul", "%m", c)
                self._put_pairs(y, line, self.integer("add", begin, first), self.integer("add", begin, "%m"))

    # -- a convolution with a chirp, of `m` elements in room for `s` ---------------------------------------------------
    def _enter(self) -> None:
        with self.loop(0, "%m", self.lanes) as start:
            block = self._block(start)
            self.put(self.mul(self.pair("%from", block), self._pairs("%table", start, "%m")), "%to", block)
        with self.loop(self._block(self.integer("add", "%m", self.lanes - 1)), self._block("%s")) as block:
            self.put(("zeroinitializer", "zeroinitializer"), "%to", block)

    def _convolve(self) -> None:
        with self.loop(0, "%s", self.lanes) as start:
            z = self._pairs(self._in_order("%from"), start, "%s")
            re, im = self.mul(z, self._pairs("%table", start, "%s"))
            # a transform with the parts exchanged goes the other way
            self.put((im, re), "%to", self._block(start))

    def _leave(self) -> None:
        with self.loop(0, "%m", self.lanes) as start:
            im, re = self._pairs(self._in_order("%from"), start, "%m")
            z = self.mul((re, im), self._pairs("%table", start, "%m"))
            self._put_pairs(z, self._in_order("%to"), start, "%m")

    # -- real lines, as `fft_code` has them ----------------------------------------------------------------------------
    def _split(self) -> None:
        half, table, line = self.word(Job.LENGTH), self.word(Job.REAL_ROOTS_AT, "ptr"), self._in_order("%from")
        count = self.integer("add", half, 1)
        for n in range(2):  # it goes round
            number = self.load(self.scalar, self.at(line, n, self.scalar))
            self.store(self.scalar, number, self._number(line, half, n))
        with self.loop(0, count, self.lanes) as start:
            w = self._pairs(table, start, count)
            a, b = self._pairs(line, start, count), self._mirrored(line, self.integer("sub", half, start))
            self._put_pairs(self.split_pair(a, b, w), self._in_order("%to"), start, count)

    def _join(self) -> None:
        half, table, line = self.word(Job.LENGTH), self.word(Job.REAL_ROOTS_AT, "ptr"), self._in_order("%from")
        for end in ("0", half):
            self.store(self.scalar, "0.0", self._number(line, end, 1))
        with self.loop(0, half, self.lanes) as start:
            w = self._pairs(table, start, half)
            a, b = self._pairs(line, start, half), self._mirrored(line, self.integer("sub", half, start))
            self.put(self.join_pair(a, b, w), "%to", self._block(start))

    def _number(self, line: str, element: str, part: int) -> str:
        return self.at(line, self.integer("add", self.integer("mul", element, 2), part), self.scalar)

    def _mirrored(self, line: str, element: str) -> Complex:
        """The elements from one backwards; those before the first are of no use to anybody."""
        first = self.integer("sub", element, self.lanes - 1)
        order = ", ".join(f"i32 {n}" for n in range(self.lanes - 1, -1, -1))
        re, im = (
            self.value(f"shufflevector {self.vector} {part}, {self.vector} poison, <{self.lanes} x i32> <{order}>")
            for part in self._pairs(line, first, self.integer("add", element, 1))
        )
        return re, im
