"""reduce-window-rewriter: long scans become short ones."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.fusion.prefix_scan import Scan, scan_of
from heron.analysis.fusion.scan_plan import single_pass
from heron.analysis.values.splat import splat_value
from heron.hlo import facts
from heron.hlo.facts import combiner
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import tuple_
from heron.hlo.ir.window import WindowDim
from heron.passes.expand.model.whole_arrays import apply_to_arrays, is_elementwise
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, scalar
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReduceWindowRewriter(Expander):
    """Does a long scan (cumsum and its kin, written as a reduce-window) in blocks, for machines of many threads.

    The scanned dimension is cut into blocks of about ``block`` elements; each block is scanned by itself; the totals of
    the blocks are scanned, in the same way if they are many; and what all blocks before it come to is combined with
    each element. That takes n times ``block`` steps in place of n², all of which but the scan of totals can be done at
    once. Windows that slide stay, as do scans of up to two blocks, those whose combiner is not elementwise, and those
    of which there are ``enough`` to keep the machine busy (0: there are never).

    The combiner must be associative, and the initial value its identity, unless it is a single op whose identity is
    known: then any initial value is counted once.

    sum {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT c = s32[] add(a, b)
    }

    zero = s32[] constant(0)
    ROOT r = s32[3,64] reduce-window(s32[3,64] x, zero), window={size=1x64 pad=0_0x63_0}, to_apply=sum
    ->
    blocks = s32[3,4,16] reshape(x)
    local = s32[3,4,16] reduce-window(blocks, zero), window={size=1x1x16 pad=0_0x0_0x15_0}, to_apply=sum
    last = s32[3,4,1] slice(local), slice={[0:3], [0:4], [15:16]}
    totals = s32[3,4] reshape(last)
    before = s32[3,4] reduce-window(totals, zero), window={size=1x4 pad=0_0x4_-1}, to_apply=sum
    spread = s32[3,4,16] broadcast(before), dimensions={0,1}
    all = s32[3,4,16] add(spread, local)
    ROOT r = s32[3,64] reshape(all)
    """

    name = "reduce-window-rewriter"
    opcodes = frozenset({"reduce-window"})
    block: int = 16
    enough: int = 0
    #: leave what scan-rewriter does in one pass over memory
    single_pass: bool = False

    def matches(self, i: Instruction) -> bool:
        scan = scan_of(i)
        if scan is None or not is_elementwise(i.to_apply):
            return False
        scans = i.operands[0].shape.num_elements // max(1, scan.source)
        if self.enough and scans >= self.enough:
            return False
        if self.single_pass and single_pass(i)[0] is not None:
            return False
        return scan.source == scan.results > 2 * self.block and scan.delay <= 1

    def expand(self, i: Instruction) -> Instruction:
        scan = scan_of(i)
        assert scan is not None and i.parent is not None
        results = _Blocks(i.parent, i, scan, self.block).scan(i.operands[: len(i.operands) // 2], bool(scan.delay))
        return i.parent.add("tuple", results, i.shape, like=i) if i.shape.is_tuple else results[0]


class _Blocks:
    """Makes the short scans of one long one. ``starts`` may be combined any number of times, ``inits`` once."""

    def __init__(self, c: Computation, i: Instruction, scan: Scan, block: int) -> None:
        self.c, self.i, self.d, self.reverse, self.block = c, i, scan.dimension, scan.reverse, block
        self.inits: Sequence[Instruction] = i.operands[len(i.operands) // 2 :]
        self.starts = _identities(c, i, self.inits)

    def scan(self, arrays: Sequence[Instruction], exclusive: bool) -> list[Instruction]:
        """The arrays scanned along the dimension, which may have any length."""
        n = arrays[0].shape.dims[self.d]
        if n <= 2 * self.block:
            return self._window(arrays, self.inits, self.d, exclusive)
        if exclusive:
            arrays = [self._padded(a, s, 1, -1) for a, s in zip(arrays, self.starts, strict=True)]
        size = _block_size(n, self.block)
        count = -(-n // size)
        cut = [self._cut(a, s, count, size) for a, s in zip(arrays, self.starts, strict=True)]
        local = self._window(cut, self.starts, self.d + 1, exclusive=False)
        before = self.scan([self._totals(x) for x in local], exclusive=True)
        spread = [self._spread(b, x) for b, x in zip(before, local, strict=True)]
        both = [*local, *spread] if self.reverse else [*spread, *local]
        return [self._joined(x, n) for x in apply_to_arrays(self.c, self.i.to_apply, both, like=self.i)]

    def _window(
        self, arrays: Sequence[Instruction], inits: Sequence[Instruction], d: int, exclusive: bool
    ) -> list[Instruction]:
        """The scan of every row along dimension `d`, as a reduce-window."""
        n = arrays[0].shape.dims[d]
        low, high = (n, -1) if exclusive else (n - 1, 0)
        along = WindowDim(n, pad_low=high, pad_high=low) if self.reverse else WindowDim(n, pad_low=low, pad_high=high)
        window = tuple(along if k == d else WindowDim(1) for k in range(arrays[0].shape.rank))
        shapes = [array(a.shape.element_type, a.shape.dims) for a in arrays]
        shape = tuple_(shapes) if self.i.shape.is_tuple else shapes[0]
        made = self.c.add(
            "reduce-window", [*arrays, *inits], shape, like=self.i, window=window, to_apply=self.i.attrs["to_apply"]
        )
        if not shape.is_tuple:
            return [made]
        return [self.c.add("get-tuple-element", [made], s, like=self.i, index=n) for n, s in enumerate(shapes)]

    def _padded(self, a: Instruction, start: Instruction, first: int, last: int) -> Instruction:
        """The array with `first` elements more where the scan begins, `last` more where it ends."""
        edges = (last, first) if self.reverse else (first, last)
        dims = list(a.shape.dims)
        dims[self.d] += first + last
        padding = tuple((*edges, 0) if k == self.d else (0, 0, 0) for k in range(a.shape.rank))
        return self.c.add("pad", [a, start], array(a.shape.element_type, dims), like=self.i, padding=padding)

    def _cut(self, a: Instruction, start: Instruction, count: int, size: int) -> Instruction:
        """The scanned dimension as two, blocks and places in them."""
        missing = count * size - a.shape.dims[self.d]
        if missing:
            a = self._padded(a, start, 0, missing)
        return reshape(a, (*a.shape.dims[: self.d], count, size, *a.shape.dims[self.d + 1 :]))

    def _totals(self, local: Instruction) -> Instruction:
        """The total of each block: the last result of its scan."""
        dims = local.shape.dims
        end = 0 if self.reverse else dims[self.d + 1] - 1
        bounds = tuple((end, end + 1, 1) if k == self.d + 1 else (0, n, 1) for k, n in enumerate(dims))
        one = array(local.shape.element_type, [limit - start for start, limit, _ in bounds])
        last = self.c.add("slice", [local], one, like=self.i, slice=bounds)
        return reshape(last, (*dims[: self.d + 1], *dims[self.d + 2 :]))

    def _spread(self, before: Instruction, local: Instruction) -> Instruction:
        kept = tuple(k for k in range(local.shape.rank) if k != self.d + 1)
        return self.c.add("broadcast", [before], local.shape, like=self.i, dimensions=kept)

    def _joined(self, x: Instruction, n: int) -> Instruction:
        """Blocks and places as one dimension of `n` elements."""
        count, size = x.shape.dims[self.d : self.d + 2]
        x = reshape(x, (*x.shape.dims[: self.d], count * size, *x.shape.dims[self.d + 2 :]))
        if n == count * size:
            return x
        begin = count * size - n if self.reverse else 0
        dims = [n if k == self.d else m for k, m in enumerate(x.shape.dims)]
        bounds = tuple((begin, begin + n, 1) if k == self.d else (0, m, 1) for k, m in enumerate(dims))
        return self.c.add("slice", [x], array(x.shape.element_type, dims), like=self.i, slice=bounds)


def _identities(c: Computation, i: Instruction, inits: Sequence[Instruction]) -> Sequence[Instruction]:
    """Values that change nothing when combined: the initial values where they are known to be, or must be."""
    opcode = combiner(i.attrs["to_apply"])
    if opcode is None:
        return inits
    element_type = inits[0].shape.element_type
    identity = facts.identity(opcode, element_type)
    if identity is None or splat_value(inits[0]) == identity:
        return inits
    return [scalar(c, element_type, identity)]


def _block_size(n: int, wanted: int) -> int:
    """The divisor of `n` nearest to `wanted` if one is within a factor of 2, so that nothing must be padded."""
    near = [size for size in range(-(-wanted // 2), 2 * wanted + 1) if n % size == 0]
    return min(near, key=lambda size: (abs(size - wanted), size), default=wanted)
