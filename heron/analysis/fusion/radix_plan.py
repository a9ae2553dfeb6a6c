"""The plan of a GPU radix sort: tiles, passes, control words, and its time next to a comparison sort.

One kernel clears the control words, one counts how often each value of each byte comes, then a pass for each byte, the
least significant first, moves every element to where it belongs by that byte. A pass reads and writes all elements
once: blocks take tiles of a row in turn and tell each other by control words how many elements of each value came
before.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.analysis.fusion.sort_keys import keys_of
from heron.analysis.fusion.sort_tiles import TILE_BYTES, steps_together, tile_for
from heron.hlo.calls.radix_sort import arrays, comparator_of, positions
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass
from heron.targets import WARP, Target

#: threads of a block, values of a digit: a thread for each value
THREADS = RADIX = 256
WARPS = THREADS // WARP
#: the control word where counts begin; the first word of all counts tickets
FIRST_BIN = 32
#: elements a thread holds at most
MOST_ITEMS = 16
#: bytes of shared memory a pass has beside the elements: counts of each warp, places, sums of warps, the tile
_COUNTS = 4 * (RADIX * (WARPS + 1) + 2 * WARPS + 1)
#: what of the memory's rate passes reach, and seconds one takes at least: to load, count, ask others, store
_PASS_RATE, _PASS_SECONDS = 0.65, 5e-6
#: bytes of elements a core ranks and sorts into order at each clock: of published sorts of 32-bit keys on sm_80 and
#: 64-bit keys on sm_100, 3.1 and 2.7
_PASS_BYTES = 3.0
#: bytes of shared memory a core reads or writes at each clock, and what of that sorting in it reaches
_SHARED_BYTES, _SHARED_RATE = 128, 0.5


@dataclass(frozen=True, slots=True)
class RadixPlan:
    """``rows`` of ``length`` elements; ``sizes``: bytes of an element of each array; ``digits``: bytes of a key.
    ``made``: bytes of an element that are positions, which the first pass makes instead of reading them."""

    rows: int
    length: int
    sizes: tuple[int, ...]
    digits: int
    made: int = 0

    @property
    def items(self) -> int:
        """Elements a thread holds in a pass: a power of two; 0 where elements are too large for this."""
        items = MOST_ITEMS
        while items and _COUNTS + items * THREADS * sum(self.sizes) > TILE_BYTES:
            items //= 2
        return items

    @property
    def tile(self) -> int:
        return self.items * THREADS

    @property
    def tiles(self) -> int:
        """Tiles of a row."""
        return -(-self.length // self.tile)

    # control words: tickets given out, how often each value of each digit comes, what tiles tell each other
    @property
    def first_state(self) -> int:
        return FIRST_BIN + self.rows * self.digits * RADIX

    @property
    def words(self) -> int:
        """32-bit control words in all."""
        return self.first_state + self.rows * self.tiles * RADIX

    @property
    def count_bits(self) -> int:
        """Bits of a state's word that count; those above say of which pass it is, and whether all before is in it."""
        return 32 - (2 * self.digits).bit_length()

    @property
    def bytes_(self) -> int:
        """Bytes of all arrays."""
        return self.rows * self.length * sum(self.sizes)

    @property
    def given(self) -> int:
        """Bytes of the operands: all but positions."""
        return self.bytes_ - self.rows * self.length * self.made

    @property
    def kernels(self) -> int:
        return 2 + self.digits

    @property
    def moved(self) -> int:
        """Bytes read and written: control words are cleared, read and written, keys counted, elements moved."""
        keys = self.rows * self.length * min(sum(self.sizes), self.digits)
        passes = self.given + (2 * self.digits - 1) * self.bytes_
        return keys + passes + 4 * self.words * (1 + 2 * self.digits)

    def refusal(self) -> str:
        """Why no kernel sorts so; empty where one does."""
        if not self.items:
            return f"{sum(self.sizes)} bytes an element: no tile of them fits into shared memory"
        if self.length + self.tile >= 1 << self.count_bits:
            return f"a row of {self.length} elements is more than {self.count_bits} bits count"
        return ""

    def waiting(self, target: Target) -> float:
        """Seconds of launches, and of what passes wait for whatever they move."""
        return self.kernels * target.launch_seconds + (1 + self.digits) * _PASS_SECONDS

    def moving(self, target: Target) -> float:
        """Seconds of reading and writing, or of ranking where that takes longer."""
        memory = self.moved / (_PASS_RATE * target.memory_bandwidth)
        return max(memory, self.digits * self.bytes_ / (_PASS_BYTES * target.cores * target.clock_hz))

    def seconds(self, target: Target) -> float:
        return self.waiting(target) + self.moving(target)


@dataclass(frozen=True, slots=True)
class Network:
    """A sort of the same rows by comparing in a bitonic network (see `emitters.sort.gpu`)."""

    rows: int
    length: int
    sizes: tuple[int, ...]

    @property
    def bits(self) -> tuple[int, int]:
        """The number of times that a row and a tile can be halved."""
        stages = max(self.length - 1, 0).bit_length()
        return stages, min(stages, tile_for(sum(self.sizes)).bit_length() - 1)

    @property
    def kernels(self) -> int:
        (stages, tile), together = self.bits, steps_together(self.sizes)
        return 1 + sum(1 + -(-(stage - tile + 1) // together) for stage in range(tile, stages))

    @property
    def moved(self) -> int:
        """Bytes read and written: every kernel does all operands."""
        return 2 * self.kernels * self.rows * self.length * sum(self.sizes)

    def seconds(self, target: Target) -> float:
        """The time of launches, memory, and steps in shared memory, two of which share their accesses."""
        stages, tile = self.bits
        blocks = self.rows * -(-self.length // (1 << tile))
        steps = tile * (tile + 1) // 2 + (stages - tile) * tile
        moved = steps * self.rows * self.length * sum(self.sizes)
        rate = _SHARED_RATE * min(blocks, target.cores) * target.clock_hz * _SHARED_BYTES
        return self.kernels * target.launch_seconds + self.moved / target.memory_bandwidth + moved / rate


def plan_of(dims: Sequence[int], sizes: Sequence[int], digits: int, made: int = 0) -> RadixPlan:
    """The plan for arrays of `dims`, sorted along the last one; ``made``: as in `RadixPlan`."""
    return RadixPlan(prod(dims[:-1]), dims[-1], tuple(sizes), digits, made)


def called(i: Instruction) -> RadixPlan:
    """The plan of a custom call (see `hlo.calls.radix_sort`)."""
    sizes = [s.element_type.byte_size for s in arrays(i)]
    keys = keys_of(comparator_of(i)) or ()
    made = sum(sizes[n] for n in positions(i))
    return plan_of(arrays(i)[0].dims, sizes, sum(k.bits // 8 for k in keys), made)
