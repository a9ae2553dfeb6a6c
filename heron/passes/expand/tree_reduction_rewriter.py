"""tree-reduction-rewriter: a reduce with few results and many elements in two steps."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from heron.analysis.fusion.reduce_order import in_any_order
from heron.analysis.fusion.small_products import is_small_product
from heron.analysis.values.splat import splat_value
from heron.hlo import facts
from heron.hlo.facts import combiner
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import tuple_
from heron.hlo.ir.types import F32, PRED, ElementType
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, is_static, reshape, scalar
from heron.records import dataclass

#: neighbouring results that one unit of work makes together where the innermost dimension stays
_COLUMNS = 32
#: parts below which cutting saves less than the second step takes
_FEWEST = 4
#: elements of a folded row: vectors of them are in registers; and folded rows for each part, at least
_FOLDED, _LEAST_ROWS = 64, 32
#: columns that a CPU keeps in registers, in vectors of numbers along the rows, but for predicates
_NARROW = 8
#: values that are looked at, to know where a reduction's operand comes from
_LOOKED_AT = 32
#: elements left over from equal parts that are as few as the results of those
_MOST_LEFT_OVER = 1 << 12


@register
@dataclass(frozen=True)
class TreeReductionRewriter(Pass):
    """Cuts the longest reduced dimension into parts, reduces each part, then the parts' results.

    A result is made by one block of GPU threads, or one CPU thread: a sum of everything would use one of many. Cut are
    reduces that leave less than ``parts`` units of work (0: twice the target's cores), into parts of at least ``least``
    elements. Where the innermost dimension stays, a unit makes 32 neighbouring results; not cut are those that come in
    enough units of ``column_bytes``, the least that is read at a time. Without ``pads``, elements left over from equal
    parts are combined with the parts' results: tests for padding would take longer than a short reducer. Small floats
    stay f32 between the two steps. HLO leaves the order of elements open; the number of parts depends on shapes and
    target alone, so the same program gives the same bits.

    Rows of fewer than ``fold`` neighbouring results do not fill vectors. Several of them count as one row then, and the
    second step reduces what they give; rows that are left over are reduced there, too.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(-0)
    ROOT r = f32[] reduce(f32[1048576] x, zero), dimensions={0}, to_apply=sum
    ->
    p = f32[128,8192] reshape(x)
    q = f32[128] reduce(p, zero), dimensions={1}, to_apply=sum
    ROOT r = f32[] reduce(q, zero), dimensions={0}, to_apply=sum
    """

    name = "tree-reduction-rewriter"
    looks_for = frozenset({"reduce"})
    parts: int = 0
    least: int = 1 << 13
    column_bytes: int = 64
    pads: bool = True
    fold: int = 0
    constraints = (
        Constraint("tree-reduction-rewriter", "instruction-fusion", "each step becomes a kernel"),
        Constraint("tree-reduction-rewriter", "priority-fusion", "each step becomes a kernel"),
        Constraint("algebraic-simplifier", "tree-reduction-rewriter", "it would join the steps", all_runs=True),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        wanted = self.parts or 2 * getattr(ctx.target, "cores", 128)
        changed = False
        for c in module.non_fusion_computations():
            for i in [i for i in c.instructions if i.opcode == "reduce" and is_static(i)]:
                count = self._count(i, wanted)
                if self._folds(i, count):
                    _fold(i, max(count, 1))
                elif count:
                    _cut(i, count, self.pads)
                else:
                    continue
                changed = True
        return changed

    def _folds(self, i: Instruction, count: int) -> bool:
        """Whether rows of narrow columns are to count as one, where there would be so many parts otherwise."""
        sizes, d = i.operands[0].shape.dims, _only_dimension(i)
        if d is None or len(i.operands) > 2 or not in_any_order(i):
            return False
        columns = prod(sizes[d + 1 :])
        is_narrow = columns <= _NARROW and i.shape.element_type is not PRED
        if not 1 < columns < self.fold or not count and (is_narrow or sizes[d] * columns < self.least):
            return False
        return sizes[d] >= _rows_folded(columns) * _LEAST_ROWS and _is_plain(i.operands[0])

    def _count(self, i: Instruction, wanted: int) -> int:
        """Into how many parts to cut the longest reduced dimension; 0: not at all."""
        sizes = i.operands[0].shape.dims
        kept = [n for d, n in enumerate(sizes) if d not in i.dimensions]
        elements = prod(sizes[d] for d in i.dimensions)
        if not elements or not prod(kept):
            return 0
        if not in_any_order(i) and sum(sizes[d] > 1 for d in i.dimensions) > 1:
            return 0  # parts of one of several dimensions do not follow each other
        inner = 1
        for d in reversed(range(len(sizes))):
            if d in i.dimensions and sizes[d] > 1:
                break
            inner *= sizes[d]
        columns = min(inner, _COLUMNS)
        fewest = min(inner, max(1, self.column_bytes // (i.operands[0].shape.element_type.byte_size or 1)))
        units, most = (-(-inner // n) * (prod(kept) // inner) for n in (columns, fewest))
        count = min(wanted // units, elements * columns // self.least)
        enough = count < _FEWEST or wanted // most < _FEWEST
        return 0 if enough else _near_divisor(max(sizes[d] for d in i.dimensions), count)


def _rows_folded(columns: int) -> int:
    """The rows of so many columns that count as one, which vectors fill."""
    return _FOLDED // gcd(_FOLDED, columns)


def _only_dimension(i: Instruction) -> int | None:
    """The dimension that a reduce goes along, if there is one, and it is not the innermost."""
    sizes = i.operands[0].shape.dims
    reduced = [d for d in i.dimensions if sizes[d] > 1]
    if len(i.dimensions) > len(reduced) or len(reduced) != 1 or reduced[0] == len(sizes) - 1:
        return None
    return reduced[0]


def _is_plain(x: Instruction) -> bool:
    """Whether an array is in memory, or is computed element by element of arrays that are: rows can be folded there."""
    work, seen = [x], {x}
    while work:
        i = work.pop()
        if i.op.is_elementwise:
            new = [o for o in i.operands if o not in seen and not o.shape.is_scalar]
            seen.update(new)
            work += new
        elif not _is_splat(i) and (facts.is_generated(i) or facts.moves_elements(i) and not facts.is_view(i)):
            return False
        elif facts.is_reduction(i) or is_small_product(i):  # a kernel may compute it where it is read
            return False
    return len(seen) <= _LOOKED_AT


def _is_splat(i: Instruction) -> bool:
    return i.opcode == "broadcast" and i.operands[0].shape.is_scalar


def _near_divisor(n: int, wanted: int) -> int:
    """A divisor of `n` near to `wanted`, so that nothing must be padded; else `wanted` itself, or 0 if n is short."""
    if n < 2 * wanted:
        return 0
    near = [k for k in range(-(-wanted // 2), wanted + 1) if n % k == 0]
    return max(near, default=wanted)


def _cut(i: Instruction, count: int, pads: bool) -> None:
    work = _Work.of(i)
    arrays = work.arrays
    sizes = arrays[0].shape.dims
    d = max(i.dimensions, key=lambda k: sizes[k])
    part, rest = divmod(sizes[d], count)
    left_over: list[Instruction] = []
    others = tuple([k for k in i.dimensions if k != d])
    if rest and not pads and rest * prod(sizes[k] for k in others) <= _MOST_LEFT_OVER:
        left_over = [_range(x, d, count * part, sizes[d]) for x in arrays]
        arrays = [_range(x, d, 0, count * part) for x in arrays]
    elif rest:
        part += 1
    cut = [_parts(x, start, d, count, part) for x, start in zip(arrays, work.starts, strict=True)]
    inside = tuple(sorted(k + (k >= d) for k in i.dimensions))  # dimension d + 1 is the place within a part
    first = _reduced(cut, work.starts, inside, work.reducer, i)
    left = sum(k not in i.dimensions for k in range(d))
    if left_over:
        singles = _reduced(left_over, work.starts, others, work.reducer, i) if others else left_over
        first = [_joined(parts, more, left) for parts, more in zip(first, singles, strict=True)]
    _finish(i, work, first, left)


def _fold(i: Instruction, count: int) -> None:
    """As `_cut`, into at most so many parts, with several rows as one."""
    work, d = _Work.of(i), _only_dimension(i)
    assert d is not None
    (x,) = work.arrays
    sizes = x.shape.dims
    before, columns = sizes[:d], prod(sizes[d + 1 :])
    rows = _rows_folded(columns)
    count = min(count, sizes[d] // (rows * _LEAST_ROWS))
    part = sizes[d] // (count * rows)
    whole = part * count * rows
    some = x if whole == sizes[d] else _range(x, d, 0, whole)
    (made,) = _reduced([reshape(some, (*before, count, part, rows * columns))], work.starts, (d + 1,), work.reducer, i)
    first = reshape(made, (*before, count * rows, *sizes[d + 1 :]))
    if whole < sizes[d]:
        first = _joined(first, _range(x, d, whole, sizes[d]), d)
    _finish(i, work, [first], d)


@dataclass(frozen=True)
class _Work:
    """The arrays that are reduced, in a wide type, and the values to begin with: of a part, and in the end."""

    arrays: Sequence[Instruction]
    starts: Sequence[Instruction]
    inits: Sequence[Instruction]
    reducer: Computation

    @staticmethod
    def of(i: Instruction) -> _Work:
        c, n = i.parent, len(i.operands) // 2
        assert c is not None and c.module is not None
        arrays, inits = i.operands[:n], i.operands[n:]
        opcode = combiner(i.to_apply) if n == 1 else None
        reducer = i.to_apply
        if opcode is not None and _is_small(arrays[0].shape.element_type):
            reducer = applied(c.module, opcode, F32)
            arrays, inits = ([_converted(x, F32) for x in some] for some in (arrays, inits))
        return _Work(arrays, _identities(opcode, inits), inits, reducer)


def _finish(i: Instruction, work: _Work, first: Sequence[Instruction], d: int) -> None:
    """Reduce the results of the first step along dimension `d`; they take the place of `i`."""
    c = i.parent
    assert c is not None
    second = _reduced(first, work.inits, (d,), work.reducer, i)
    if i.shape.is_array and i.shape.element_type is not second[0].shape.element_type:
        second = [_converted(second[0], i.shape.element_type)]
    c.replace(i, c.add("tuple", second, i.shape, like=i) if i.shape.is_tuple else second[0])


def _is_small(t: ElementType) -> bool:
    return t.is_float and t.bits < 32


def _converted(x: Instruction, t: ElementType) -> Instruction:
    assert x.parent is not None
    return x.parent.add("convert", [x], array(t, x.shape.dims), like=x)


def _identities(opcode: str | None, inits: Sequence[Instruction]) -> Sequence[Instruction]:
    """The start values of the parts: the initial values if they are identities, or must be."""
    if opcode is None:
        return inits
    (init,) = inits
    assert init.parent is not None
    identity = facts.identity(opcode, init.shape.element_type)
    if identity is None or splat_value(init) == identity:
        return inits
    return [scalar(init.parent, init.shape.element_type, identity)]


def _range(x: Instruction, d: int, start: int, stop: int) -> Instruction:
    """The positions from `start` to `stop` of dimension `d`."""
    assert x.parent is not None
    dims = x.shape.dims
    cut = tuple((start, stop, 1) if k == d else (0, n, 1) for k, n in enumerate(dims))
    shape = array(x.shape.element_type, (*dims[:d], stop - start, *dims[d + 1 :]))
    return x.parent.add("slice", [x], shape, like=x, slice=cut)


def _joined(x: Instruction, y: Instruction, d: int) -> Instruction:
    """`x`, then `y` along dimension `d`."""
    assert x.parent is not None
    dims = x.shape.dims
    shape = array(x.shape.element_type, (*dims[:d], dims[d] + y.shape.dims[d], *dims[d + 1 :]))
    return x.parent.add("concatenate", [x, y], shape, like=x, dimensions=(d,))


def _parts(x: Instruction, start: Instruction, d: int, count: int, part: int) -> Instruction:
    """Dimension `d` as two: parts, and places in them; filled up with `start`."""
    assert x.parent is not None
    dims, t = x.shape.dims, x.shape.element_type
    missing = count * part - dims[d]
    if missing:
        padding = tuple((0, missing if k == d else 0, 0) for k in range(len(dims)))
        dims = (*dims[:d], count * part, *dims[d + 1 :])
        x = x.parent.add("pad", [x, start], array(t, dims), like=x, padding=padding)
    return reshape(x, (*dims[:d], count, part, *dims[d + 1 :]))


def _reduced(
    arrays: Sequence[Instruction],
    inits: Sequence[Instruction],
    dimensions: tuple[int, ...],
    reducer: Computation,
    like: Instruction,
) -> list[Instruction]:
    c = like.parent
    assert c is not None
    dims = [n for k, n in enumerate(arrays[0].shape.dims) if k not in dimensions]
    shapes = [array(a.shape.element_type, dims) for a in arrays]
    result = tuple_(shapes) if like.shape.is_tuple else shapes[0]
    made = c.add("reduce", [*arrays, *inits], result, like=like, dimensions=dimensions, to_apply=reducer)
    if not result.is_tuple:
        return [made]
    return [c.add("get-tuple-element", [made], s, index=k) for k, s in enumerate(shapes)]
