"""Passes of Fourier transforms whose factor is a prime too large for a butterfly in registers.

A line's elements are put together to sums and differences of pairs, in scratch memory. Each pair of results is a sum
over those, times roots of unity: a product of matrices, of which some results at a time stay in registers. It takes
time in proportion to the prime; up to some hundred that is less than a convolution with a chirp (`fft_chirp.py`).

Source: C. Van Loan, Computational Frameworks for the Fast Fourier Transform, SIAM 1992, section 2.1.
"""

from __future__ import annotations

from functools import cache

from heron.codegen.native import fft_chirp
from heron.codegen.native.fft_passes import RADICES, Complex, LineVector, Vectors, factors

#: the largest prime of a pass, and the most that those of a line add up to: in vectors of many lines, for which the
#: longer line of a chirp leaves caches, and in narrow ones
_LARGEST, _TOGETHER, _TOGETHER_NARROW = 127, 256, 96
#: bytes of a narrow vector
_NARROW = 16
#: pairs of results whose sums are in registers
_PAIRS = 4
#: of the time of a factor's butterfly, that of a pass of as large a prime: its sums wait for nothing
_QUICKER = 3


def passes(n: int, form: LineVector) -> list[int] | None:
    """`n` as factors there are passes for; None where it has others, or where a chirp takes less time."""
    found = factors(n)
    return _passes(n, form.byte_size <= _NARROW) if found is None else found


@cache
def _passes(n: int, is_narrow: bool) -> list[int] | None:
    rest, large = n, list[int]()
    for radix in range(RADICES[-1] + 2, _LARGEST + 1, 2):
        while rest % radix == 0 and all(radix % p for p in RADICES):
            large.append(radix)
            rest //= radix
    small = factors(rest)
    if small is None or sum(large) > (_TOGETHER_NARROW if is_narrow else _TOGETHER):
        return None
    work = n * (sum(map(fft_chirp.work, small)) + sum(fft_chirp.work(p) / _QUICKER for p in large))
    return [*small, *large] if work < fft_chirp.work_of(n) else None


class PrimePassWriter(Vectors):
    """The pass of one prime."""

    def __init__(self, form: LineVector, radix: int) -> None:
        super().__init__(form)
        self.radix = radix

    def text(self, name: str) -> str:
        """The function ``void NAME(ptr from, ptr to, ptr roots, i64 m, i64 s)``."""
        half = self.radix // 2
        self.sums, self.differences = (self.slot(f"[{2 * half} x {self.vector}]") for _ in range(2))
        self.far = self.integer("mul", "%m", "%s")
        self.turns = self.integer("mul", self.far, self.radix)
        with self.loop(0, "%m") as p:
            turn = self.integer("mul", p, "%s")
            with self.loop(0, "%s") as q:
                first = self._pairs(self.integer("add", q, turn), half)
                target = self.integer("add", q, self.integer("mul", turn, self.radix))
                self.put(self._total(first, half), "%to", target)
                whole = half - half % _PAIRS
                with self.loop(1, 1 + whole, _PAIRS) as k:
                    self._results(first, k, _PAIRS, target, turn)
                if half > whole:
                    self._results(first, str(1 + whole), half - whole, target, turn)
        arrays = "ptr noalias %from, ptr noalias %to, ptr noalias %roots"
        return self.function(f"void @{name}({arrays}, i64 %m, i64 %s) nounwind")

    def _pairs(self, first: str, half: int) -> Complex:
        """Element 0, once sums and differences of the others are in scratch."""
        with self.loop(0, half) as j:
            near = self.integer("mul", self.far, self.integer("add", j, 1))
            a = self.pair("%from", self.integer("add", first, near))
            b = self.pair("%from", self.integer("sub", self.integer("add", first, self.turns), near))
            self.put(self.add(a, b), self.sums, j)
            self.put(self.sub(a, b), self.differences, j)
        return self.pair("%from", first)

    def _total(self, first: Complex, half: int) -> Complex:
        """The sum of all elements."""
        slots = [self.slot(self.vector) for _ in range(2)]
        for part, slot in zip(first, slots, strict=True):
            self.put_vector(part, slot)
        with self.loop(0, half) as j:
            total = self.add((self.vector_at(slots[0]), self.vector_at(slots[1])), self.pair(self.sums, j))
            for part, slot in zip(total, slots, strict=True):
                self.put_vector(part, slot)
        return self.vector_at(slots[0]), self.vector_at(slots[1])

    def _results(self, first: Complex, k: str, count: int, target: str, turn: str) -> None:
        """Results `k` up to so many more, and as many from the end: sums with cosines, and with sines."""
        numbers = [self.integer("add", k, n) for n in range(count)]
        steps = [self.integer("mul", n, self.far) for n in numbers]
        places = [self.slot("i64") for _ in numbers]
        sums = [[self.slot(self.vector) for _ in range(4)] for _ in numbers]
        for place, step, slots in zip(places, steps, sums, strict=True):
            self.line(f"store i64 {step}, ptr {place}")
            for value, slot in zip((*first, "zeroinitializer", "zeroinitializer"), slots, strict=True):
                self.put_vector(value, slot)
        with self.loop(0, self.radix // 2) as j:
            both, apart = self.pair(self.sums, j), self.pair(self.differences, j)
            for place, step, slots in zip(places, steps, sums, strict=True):
                at = self.value(f"load i64, ptr {place}")
                cosine, sine = self.root("%roots", at)
                for slot, x, y in zip(slots, (*both, *apart), (cosine, cosine, sine, sine), strict=True):
                    self.put_vector(self.real("fadd", self.vector_at(slot), self.real("fmul", x, y)), slot)
                following = self.integer("add", at, step)
                is_round = self.value(f"icmp uge i64 {following}, {self.turns}")
                again = self.value(f"select i1 {is_round}, i64 {self.turns}, i64 0")
                self.line(f"store i64 {self.integer('sub', following, again)}, ptr {place}")
        for n, slots in zip(numbers, sums, strict=True):
            even_real, even, odd_real, odd = (self.vector_at(slot) for slot in slots)
            low = self.real("fsub", even_real, odd), self.real("fadd", even, odd_real)
            high = self.real("fadd", even_real, odd), self.real("fsub", even, odd_real)
            for z, number in ((low, n), (high, self.integer("sub", self.radix, n))):
                w = self.root("%roots", self.integer("mul", turn, number))
                self.put(self.mul(z, w), "%to", self.integer("add", target, self.integer("mul", "%s", number)))
