"""An innermost loop whose body asks on which side of a border its variable is becomes a loop for each side.

LLVM makes vectors of both branches, under masks, or takes addresses from either one by one: of a rolled array of bytes
32 elements a microsecond. A loop for each side reads one place after the other. The border may be known only when
the kernel runs; it is then brought between the loop's own bounds.

    scf.for %i = %c0 to %c64 step %c1 { %j = %i + %shift; %b = %j < 64; %x = scf.if %b { a[%j] } else { a[%j - 64] } … }
    ->
    %border = min(max(64 - %shift, 0), 64)
    scf.for %i = %c0 to %border step %c1 { %x = a[%i + %shift] … }
    scf.for %i = %border to %c64 step %c1 { %x = a[%i + %shift - 64] … }

Both loops of a short one end with a part of a vector, on machines with masks (`heron.mask_rest`).

CPU kernels only: a GPU's thread has few elements, or one. It matters to rolls, to windows of padded images and to
concatenations that are read along several dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple, cast

from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from heron.analysis.indexing import Add, Const, Dim, Expr, IndexingMap
from heron.codegen.ir.builder import INTEGER_PREDICATES, Builder, Constants
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp, PureCallOp
from heron.codegen.ir.editing import (
    apply_indexing,
    constant_value,
    functions,
    ops_of,
    ops_within,
    overwritten_inputs,
    replace,
    walk_blocks,
)
from heron.codegen.ir.types import I1
from heron.codegen.transforms import simplify_arith
from heron.codegen.transforms.lib.buffers import byte_size
from heron.codegen.transforms.options import TransformOptions

#: the most borders, and ops in all copies of a loop
MAX_BORDERS, MAX_OPS = 7, 1000
#: rounds that are so few that each loop takes about as long as the whole, and ops outside of branches in all of them
FEW, MAX_SHARED = 32, 64
#: bits of numbers that are read under masks without a loss
WIDE = 32
#: rounds below which a part of a vector is no small part of a loop
SHORT = 1024
#: of comparisons that tell sides: what is added to their constant, and whether they hold above the border
_SIDES = {"slt": (0, False), "sle": (1, False), "sge": (0, True), "sgt": (1, True)}


class _Test(NamedTuple):
    """A comparison of ``value``, the loop's variable plus ``rest`` of ``operands``, with ``border``.

    ``above``: it holds from there on.
    """

    op: arith.CmpiOp
    value: SSAValue
    rest: Expr
    operands: tuple[SSAValue, ...]
    border: int
    above: bool


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Splits every such loop of a CPU kernel."""
    if options.is_gpu:
        return
    changed = False
    for function in functions(module):
        constants, overwritten = Constants(function.body.block), overwritten_inputs(function)
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if type(op) is scf.ForOp:
                    changed |= _split(op, constants, overwritten)
    if changed:
        simplify_arith.run(module, options)


def _split(loop: scf.ForOp, constants: Constants, overwritten: set[SSAValue]) -> bool:
    body = loop.body.block
    inside = ops_within(loop)[1:]
    rounds = _rounds(loop)
    if scf.ForOp in map(type, inside) or not rounds:
        return False
    ifs = [op for op in inside if type(op) is scf.IfOp and _wants(op)]
    tests = _tests(body, ifs)
    if not tests:
        return False
    most = max(tests, key=lambda t: sum(_same(t, other) for other in tests))
    tests = [t for t in tests if _same(t, most)]
    low, high = (None if most.operands else constant_value(v) for v in (loop.lb, loop.ub))
    least, last = -inf if low is None else low, inf if high is None else high
    borders = sorted({t.border for t in tests if least < t.border < last})
    loops = len(borders) + 1
    if loops >= rounds or loops > MAX_BORDERS + 1 or len(inside) * loops > MAX_OPS:
        return False
    if rounds < FEW and (len(inside) - len(_inside_of(ifs))) * loops > MAX_SHARED:
        return False
    block = loop.parent
    assert block is not None
    builder = Builder(block, constants, before=loop, known={})
    outside = _Outside(loop, builder, overwritten)
    if not all(map(outside.can, most.operands)):
        return False
    rest = _rest(most, [outside.value(v) for v in most.operands], builder)
    ends = [builder.op(arith.MaxSIOp, builder.op(arith.SubiOp, builder.integer(b), rest), loop.lb) for b in borders]
    ends = [*(builder.op(arith.MinSIOp, end, loop.ub) for end in ends), loop.ub]
    _copies(loop, builder, tests, [least, *borders], ends)
    return True


def _inside_of(ifs: Sequence[scf.IfOp]) -> set[Operation]:
    return {i for op in ifs for i in ops_within(op)}


def _copies(
    loop: scf.ForOp, builder: Builder, tests: Sequence[_Test], starts: Sequence[float], ends: Sequence[SSAValue]
) -> None:
    """The loop up to each of `ends`, one after the other; in each, from one of `starts` on, the tests are decided."""
    start, carried = loop.lb, list(loop.iter_args)
    rounds = _rounds(loop)
    places: dict[Operation, int] = {t.op: n for n, t in enumerate(tests)}
    marked = [(n, places[op]) for n, op in enumerate(ops_within(loop)) if op in places]
    for first, end in zip(starts, ends, strict=True):
        copy = loop.clone()
        copy.operands = [start, end, loop.step, *carried]
        if rounds < SHORT:
            copy.attributes["heron.mask_rest"] = UnitAttr()
        builder.add(copy)
        inside = ops_within(copy)
        for n, place in marked:
            t, op = tests[place], inside[n]
            replace(op, [builder.integer(int((t.border > first) != t.above), I1)])
        start, carried = end, list(copy.results)
    replace(loop, carried)


def _rounds(loop: scf.ForOp) -> int:
    """The most rounds that a loop has: of one over work items as many as its indices allow; 0: unknown, or by steps."""
    low, high, step = (constant_value(v) for v in (loop.lb, loop.ub, loop.step))
    if step != 1:
        return 0
    if low is not None and high is not None:
        return high - low
    variable = loop.body.block.args[0]
    for use in variable.uses:
        if isinstance(use.operation, ApplyIndexingOp) and use.index < len(use.operation.map.dims):
            return use.operation.map.dims[use.index].hi + 1
    return 0


def _wants(op: scf.IfOp) -> bool:
    """Whether a loop for each branch is better than long vectors under masks: where both branches read memory, or
    numbers that are small. A single branch is read under a mask as fast as without one."""
    read = [{type(i) for i in _within(region)} & _READS for region in op.regions]
    if not any(read):
        return False
    numbers = [r.type for r in op.results if not isinstance(r.type, TensorType)]
    return all(read) or any(8 * byte_size(t) < WIDE for t in numbers)


_READS = {tensor.ExtractOp, PureCallOp}


def _within(region: Region) -> list[Operation]:
    return [i for block in region.blocks for op in ops_of(block) for i in ops_within(op)]


def _tests(body: Block, ifs: Sequence[scf.IfOp]) -> list[_Test]:
    """The comparisons with the variable of the loop over `body` that the conditions `ifs` are made of."""
    found: dict[Operation, _Test | None] = {}
    stack = [op.cond for op in ifs]
    while stack:
        op = stack.pop().owner
        if isinstance(op, (arith.AndIOp, arith.OrIOp)):
            stack.extend(op.operands)
        elif isinstance(op, arith.CmpiOp) and op not in found:
            found[op] = _test(op, body.args[0])
    return [t for t in found.values() if t is not None]


def _test(op: arith.CmpiOp, variable: SSAValue) -> _Test | None:
    side = _SIDES.get(INTEGER_PREDICATES[op.predicate.value.data])
    limit = constant_value(op.rhs)
    if side is None or limit is None:
        return None
    value, known = _moved(op.lhs)
    border, above = limit + side[0] - known, side[1]
    if value is variable:
        return _Test(op, value, Const(0), (), border, above)
    made = value.owner
    if not isinstance(made, ApplyIndexingOp) or made.map.syms:
        return None
    places = [n for n, v in enumerate(made.operands) if v is variable]
    if len(places) != 1:
        return None
    terms = _terms(made.map.results[value.index])  # pyright: ignore[reportAttributeAccessIssue]
    here = Dim(places[0])
    others = [t for t in terms if t != here]
    if len(others) != len(terms) - 1 or any(here in t.variables() for t in others):
        return None
    numbers = [t for t in others if isinstance(t, Const)]
    rest = sum((t for t in others if not isinstance(t, Const)), start=cast(Expr, Const(0)))
    return _Test(op, value, rest, tuple(made.operands), border - sum(t.value for t in numbers), above)


def _moved(value: SSAValue) -> tuple[SSAValue, int]:
    """`value` as another one plus a number."""
    number = 0
    while isinstance(made := value.owner, ApplyIndexingOp):
        terms = _terms(made.map.results[value.index])  # pyright: ignore[reportAttributeAccessIssue]
        places = [t for t in terms if isinstance(t, Dim)]
        if len(places) != 1 or any(not isinstance(t, (Dim, Const)) for t in terms):
            break
        number += sum(t.value for t in terms if isinstance(t, Const))
        value = made.operands[places[0].index]
    return value, number


def _terms(e: Expr) -> list[Expr]:
    return _terms(e.lhs) + _terms(e.rhs) if isinstance(e, Add) else [e]


def _same(a: _Test, b: _Test) -> bool:
    """Whether the borders of two tests are a known number apart."""
    return a.rest == b.rest and a.operands == b.operands


def _rest(t: _Test, operands: Sequence[SSAValue | None], builder: Builder) -> SSAValue:
    """The value of what is added to the variable, ahead of the loop."""
    if not operands:
        return builder.integer(0)
    made = t.value.owner
    assert isinstance(made, ApplyIndexingOp)
    m = IndexingMap([t.rest], made.map.dims)
    zero = builder.integer(0)
    return builder.add(apply_indexing(m, [zero if v is None else v for v in operands])).results[0]


class _Outside:
    """Values that do not change while a loop runs, computed ahead of it. Its own variable is None."""

    def __init__(self, loop: scf.ForOp, builder: Builder, overwritten: set[SSAValue]) -> None:
        self.loop, self.builder, self.overwritten = loop, builder, overwritten
        self.inside = set(ops_within(loop)[1:])

    def can(self, value: SSAValue) -> bool:
        """Whether a value is the same in every round and may be computed ahead."""
        if value is self.loop.body.block.args[0]:
            return True
        return self._same(value)

    def _same(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            return value.owner is not self.loop.body.block
        op = value.owner
        if not isinstance(op, Operation) or op not in self.inside:
            return True
        if op.parent is not self.loop.body.block:
            return False  # it may not be reached in every round
        if isinstance(op, tensor.ExtractOp):
            source = op.tensor
            outside = isinstance(source, BlockArgument) and isinstance(source.owner.parent_op(), FuncOp)
            if not outside or source in self.overwritten:
                return False
        elif not isinstance(op, ApplyIndexingOp) and op.dialect_name() != "arith":
            return False
        return all(map(self._same, op.operands))

    def value(self, value: SSAValue) -> SSAValue | None:
        """The value, computed ahead of the loop."""
        if value is self.loop.body.block.args[0]:
            return None
        return self._ahead(value)

    def _ahead(self, value: SSAValue) -> SSAValue:
        if isinstance(value, BlockArgument) or value.owner not in self.inside:
            return value
        op = value.owner
        assert isinstance(op, Operation)
        copy = op.clone()
        copy.operands = [self._ahead(v) for v in op.operands]
        return self.builder.add(copy).results[op.results.index(value)]  # pyright: ignore[reportArgumentType]
