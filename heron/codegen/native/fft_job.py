"""The table that describes one Fourier transform of lines, and the writer of functions that read it."""

from __future__ import annotations

from enum import IntEnum

from heron.codegen.native.fft_passes import Complex, Vectors


class Job(IntEnum):
    """Words of the table that describes one transform of lines; ``AT`` are addresses, sizes are bytes."""

    LENGTH = 0  # complex elements of a line between the passes
    LANES = 1
    SCRATCH = 2  # bytes of each of the two scratch arrays
    LINES = 3  # how many lie next to each other
    GROUPS = 4  # of vectors of those
    FROM_STEP = 5  # from one line to the next, or along a line from one element to the next
    TO_STEP = 6
    FROM_OUTER = 7  # from one set of lines to the next
    TO_OUTER = 8
    READ = 9  # complex elements of a line that are read and written
    WRITTEN = 10
    READ_FLIPPED = 11  # 1: real and imaginary parts exchanged
    WRITE_FLIPPED = 12
    SCALE = 13  # an f64
    REAL_ROOTS_AT = 14
    READ_AT = 15  # functions: `PIECES`
    JOIN_AT = 16  # or null
    SPLIT_AT = 17  # or null
    WRITE_AT = 18
    PASSES = 19
    PASSES_AT = 20  # for each its function, m, s and its table


class JobWriter(Vectors):
    """Writes functions with a job among their arguments."""

    def word(self, n: Job, kind: str = "i64") -> str:
        return self.value(f"load {kind}, ptr {self.at('%job', int(n), 'i64')}, align 8")

    def bytes(self, base: str, offset: str | int) -> str:
        return self.at(base, offset, "i8")

    def flip(self, n: str, flipped: str) -> str:
        """The place of a part: real and imaginary exchanged or not."""
        return self.integer("xor", n, flipped)

    def scale(self) -> str:
        number = self.word(Job.SCALE, "double")
        if self.scalar == "float":
            number = self.value(f"fptrunc double {number} to float")
        return self.repeated(number)

    # -- real lines: elements k and n - k of the transform of a line of n pairs, and root k of 2 n ---
    def split_pair(self, a: Complex, b: Complex, w: Complex) -> Complex:
        """Element k of the real line's transform: the part of even elements, and that of the others, turned."""
        even = self.real("fadd", a[0], b[0]), self.real("fsub", a[1], b[1])
        odd = self.real("fsub", a[0], b[0]), self.real("fadd", a[1], b[1])
        return self.times(self.add(even, self.down(self.mul(odd, w))), 0.5)

    def join_pair(self, a: Complex, b: Complex, w: Complex) -> Complex:
        """The way back, times two and parts exchanged: even + i odd."""
        even = self.real("fadd", a[0], b[0]), self.real("fsub", a[1], b[1])
        odd = self.real("fsub", a[0], b[0]), self.real("fadd", a[1], b[1])
        odd = self.mul(odd, (w[0], self.value(f"fneg {self.vector} {w[1]}")))
        return self.real("fadd", even[1], odd[0]), self.real("fsub", even[0], odd[1])
