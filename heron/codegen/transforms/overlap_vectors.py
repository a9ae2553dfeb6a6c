"""The steps of a loop that are left over from whole vectors are done by one more vector, which overlaps the one before.

    scf.for %j = 0 to 13 iter_args(%m = %least) { %x = in[%i + %j]; %n = max(%m, %x) }
    ->
    %p = scf.for %j = 0 to 8 iter_args(%m = %least) { %x = in[%i + %j]; %n = max(%m, %x) }
    scf.for %j = 5 to 13 iter_args(%m = %p) { %x = in[%i + %j]; %n = max(%m, %x) }

An extremum that looks at an element twice stays the same, and so does an array that is written twice. A sum leaves out
the elements it has: `select(%j >= 8, %x, -0)`. A loop of a few vectors that stores nothing combines them lane by lane,
so that the lanes of one are left to combine:

    scf.for %j = 0 to 8 iter_args(%m = %least) { %x = in[%i + %j]; %y = in[%i + %j + 5]; %n = max(%m, max(%x, %y)) }

A loop that writes what it reads cannot do an element twice: it ends with loops of 4, 2 and 1.

LLVM does the steps that are left over one by one, or makes masks of several instructions for them. It matters along
rows of some dozens of elements, which may be read in reverse, and to loops with functions, each as long as a vector.

CPU kernels only, on machines that have no instructions for a part of a vector (`TransformOptions.vector_bits`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects import arith, llvm, math, scf
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from heron.codegen.ir.accesses import (
    address_of,
    bits_of,
    follows,
    goes_back,
    is_apart,
    reads_what_is_written,
    sources_of,
)
from heron.codegen.ir.builder import Builder, Constants, int_attr
from heron.codegen.ir.editing import constant_value, erase, functions, ops_of, replace, walk_blocks
from heron.codegen.transforms.lib.math_names import FUNCTIONS
from heron.codegen.transforms.options import TransformOptions

#: steps up to which LLVM writes loops out in the loop around them, so that vectors go along that; of loops
#: that store and call no function
FEWEST, FEWEST_STORED = 8, 4
#: steps of a loop of which those left over are little of its time, and of one with functions
MOST, MOST_OF_FUNCTIONS = 128, 1024
#: steps left over that are as well done one by one where they are no functions
ONE_BY_ONE = 2
#: vectors of a loop that are combined lane by lane, and ops for all of them
ABREAST, MOST_OPS = 4, 200
#: vectors at a time of a loop without functions
AT_A_TIME = (4, 2)
#: attributes of a loop that ask for nothing where there are no masks
_PLAIN = {"heron.short", "heron.mask_rest"}
#: ops of which looking at an element twice changes nothing, and the number that changes nothing of others
_SAME = (
    arith.MaximumfOp, arith.MinimumfOp, arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp, arith.AndIOp,
    arith.OrIOp,
)  # fmt: skip
_NEUTRAL: dict[type[Operation], float] = {
    arith.AddfOp: -0.0, arith.MulfOp: 1.0, arith.AddiOp: 0, arith.MuliOp: 1, arith.XOrIOp: 0,
}  # fmt: skip
#: ops without vector instructions
_SINGLE = (arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, math.IPowIOp, math.FPowIOp)
_FENCE = "llvm.arithmetic.fence"


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Splits every such loop of a CPU kernel."""
    if options.is_gpu or not options.vector_bits:
        return
    for function in functions(module):
        constants = Constants(function.body.block)
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if type(op) is scf.ForOp:
                    _split(op, options.vector_bits, constants)


class _Row(NamedTuple):
    """A loop that vectors of so many lanes are made of; ``ops``: those of a step but its last."""

    loop: scf.ForOp
    lower: int
    steps: int
    ops: Sequence[Operation]
    lanes: int

    @property
    def upper(self) -> int:
        return self.lower + self.steps

    @property
    def has_functions(self) -> bool:
        return any(type(op) in FUNCTIONS for op in self.ops)

    @property
    def stores(self) -> bool:
        return any(isinstance(op, llvm.StoreOp) for op in self.ops)

    @property
    def one_by_one(self) -> int:
        """The steps left over that are as well done one by one."""
        return 0 if self.has_functions else ONE_BY_ONE


def _split(loop: scf.ForOp, vector_bits: int, constants: Constants) -> None:
    lower, upper = constant_value(loop.lb), constant_value(loop.ub)
    if lower is None or upper is None or constant_value(loop.step) != 1 or loop.attributes.keys() - _PLAIN:
        return
    row = _Row(loop, lower, upper - lower, ops_of(loop.body.block)[:-1], 0)
    most = MOST_OF_FUNCTIONS if row.has_functions else MOST
    is_copy = row.stores and not row.has_functions and "heron.short" not in loop.attributes
    fewest = FEWEST_STORED if is_copy else FEWEST
    if not fewest < row.steps < most or not _is_for_vectors(loop, row.ops):
        return
    row = row._replace(lanes=min(vector_bits // _widest(loop, row.ops), 1 << row.steps.bit_length() - 1))
    is_little = row.steps <= ABREAST * row.lanes and len(row.ops) * -(-row.steps // row.lanes) <= MOST_OPS
    if is_little and not row.stores and row.steps % row.lanes > row.one_by_one:
        _put_abreast(row, constants)
    else:
        _put_in_turn(row, constants)


def _put_in_turn(row: _Row, constants: Constants) -> None:
    """A loop of whole vectors, as many at a time as go into it, then one or more for what is left."""
    vectors = row.steps // row.lanes
    at_a_time = min(2, vectors) if row.has_functions else next((n for n in AT_A_TIME if vectors % n == 0), 1)
    left = row.steps % (row.lanes * at_a_time)
    if not left:
        return
    builder = Builder(_block(row.loop), constants, before=row.loop)
    border = row.upper - left
    part = _copy(row.loop, builder, row.lower, border, list(row.loop.iter_args))
    part.attributes["heron.interleave"] = int_attr(at_a_time)
    if reads_what_is_written(row.ops, row.ops):
        ends = [*_powers(border, left)]
    else:
        last = left if left <= row.one_by_one else _last(left, row.lanes * at_a_time)
        ends = [(row.upper - last, row.upper)]
    for start, end in ends:
        part = _copy(row.loop, builder, start, end, list(part.results))
        part.attributes["heron.interleave"] = int_attr(max(1, (end - start) // row.lanes))
        if start < border:
            _leave_out(part, border, constants)
    replace(row.loop, list(part.results))


def _put_abreast(row: _Row, constants: Constants) -> None:
    """All vectors of a loop that stores nothing, in a loop over the lanes of one: they are combined lane by lane."""
    loop, lower, steps, _, lanes = row
    builder = Builder(_block(loop), constants, before=loop)
    copy = _copy(loop, builder, lower, lower + lanes, list(loop.iter_args))
    copy.attributes["heron.interleave"] = int_attr(1)
    body, end = copy.body.block, copy.body.block.last_op
    assert end is not None
    combined = [_combined(body, carried) for carried in body.args[1:]]
    ops = [op for op in ops_of(body)[:-1] if op not in combined]
    inside = Builder(body, constants, before=end)
    starts = [*range(lanes, steps - lanes, lanes), steps - lanes]
    copies: list[dict[SSAValue, SSAValue]] = []
    for start in starts:
        place = inside.op(arith.AddiOp, body.args[0], inside.integer(start, body.args[0].type))
        copies.append({body.args[0]: place})
        for op in ops:
            inside.add(op.clone(copies[-1]))
    border = lower + len(starts) * lanes
    for number, (op, carried) in enumerate(zip(combined, body.args[1:], strict=True)):
        assert op is not None
        first = op.operands[op.operands[0] is carried]
        elements = [first, *(values.get(first, first) for values in copies)]
        neutral = _NEUTRAL.get(type(op))
        if neutral is not None and steps % lanes:
            elements[-1] = _from(inside, copies[-1][body.args[0]], border, elements[-1], neutral)
        total = elements[0]
        for element in (*elements[1:], carried):
            both = op.clone()
            both.operands = [total, element]
            total = inside.add(both).results[0]
        end.operands[number] = total
        erase(op)
    replace(loop, list(copy.results))


def _from(builder: Builder, place: SSAValue, border: int, element: SSAValue, neutral: float) -> SSAValue:
    """An element from the border on, and before it a number that changes nothing."""
    is_new = builder.cmpi("sge", place, builder.integer(border, place.type))
    return builder.select(is_new, element, _constant(builder, neutral, element.type))


def _last(left: int, lanes: int) -> int:
    """The steps of the last loop, for `left` steps of `lanes`: a power of two, at least half a vector."""
    return max(1 << (left - 1).bit_length(), lanes // 2 if lanes > 2 else lanes)


def _powers(start: int, count: int) -> Iterator[tuple[int, int]]:
    """A range as ranges of powers of two, the largest first."""
    while count:
        size = 1 << count.bit_length() - 1
        yield start, start + size
        start, count = start + size, count - size


def _block(loop: scf.ForOp) -> Block:
    block = loop.parent
    assert block is not None
    return block


def _copy(loop: scf.ForOp, builder: Builder, lower: int, upper: int, carried: Sequence[SSAValue]) -> scf.ForOp:
    """The loop between other bounds."""
    copy = loop.clone()
    kind = loop.lb.type
    copy.operands = [builder.integer(lower, kind), builder.integer(upper, kind), loop.step, *carried]
    builder.add(copy)
    return copy


def _leave_out(loop: scf.ForOp, border: int, constants: Constants) -> None:
    """Elements in front of the border do not count in sums and products."""
    body = loop.body.block
    for carried in body.args[1:]:
        combined = _combined(body, carried)
        neutral = None if combined is None else _NEUTRAL.get(type(combined))
        if combined is None or neutral is None:
            continue
        place = 1 if combined.operands[0] is carried else 0
        builder = Builder(body, constants, before=combined)
        combined.operands[place] = _from(builder, body.args[0], border, combined.operands[place], neutral)


def _constant(builder: Builder, value: float, kind: Attribute) -> SSAValue:
    return builder.integer(int(value), kind) if isinstance(kind, IntegerType) else builder.floating(value, kind)


def _is_for_vectors(loop: scf.ForOp, ops: Sequence[Operation]) -> bool:
    """Whether LLVM makes vectors of a loop, and elements may be done twice."""
    body = loop.body.block
    if any(op.regions or isinstance(op, CallOp) and not _is_fence(op) for op in ops):
        return False
    if any(isinstance(op, _SINGLE) and body.args[0] in sources_of(op) for op in ops):
        return False
    if any(_combined(body, carried) is None for carried in body.args[1:]):
        return False
    accesses = [op for op in ops if isinstance(op, llvm.LoadOp | llvm.StoreOp)]
    stored = [op for op in accesses if isinstance(op, llvm.StoreOp)]
    if not accesses or any(is_apart(address_of(op), loop) and not _goes_back(op, body.args[0]) for op in accesses):
        return False
    return all(_moves(op, body.args[0]) for op in stored)


def _is_fence(op: CallOp) -> bool:
    return op.callee.root_reference.data.startswith(_FENCE)


def _goes_back(op: llvm.LoadOp | llvm.StoreOp, step: BlockArgument) -> bool:
    """Whether it is a load along a row in reverse."""
    made = address_of(op).owner
    return isinstance(op, llvm.LoadOp) and isinstance(made, llvm.GEPOp) and goes_back(made.operands[-1], step)


def _moves(op: llvm.StoreOp, step: BlockArgument) -> bool:
    made = address_of(op).owner
    return isinstance(made, llvm.GEPOp) and follows(made.operands[-1], step)


def _combined(body: Block, carried: SSAValue) -> Operation | None:
    """The op that combines what a loop carries with an element, where that is its one use and in any order."""
    last = body.last_op
    assert last is not None and isinstance(carried, BlockArgument)
    op = last.operands[carried.index - 1].owner
    uses = list(carried.uses)
    if not isinstance(op, Operation) or op.parent is not body or len(uses) != 1 or uses[0].operation is not op:
        return None
    if len(list(op.results[0].uses)) != 1 or not (isinstance(op, _SAME) or type(op) in _NEUTRAL):
        return None
    if isinstance(op, arith.AddfOp | arith.MulfOp) and FastMathFlag.REASSOC not in op.fastmath.data:
        return None
    return op


def _widest(loop: scf.ForOp, ops: Sequence[Operation]) -> int:
    """The bits of the widest numbers that are loaded, stored, carried or computed by functions."""
    numbers = [v for op in ops if isinstance(op, llvm.LoadOp) or type(op) in FUNCTIONS for v in op.results]
    numbers += [op.operands[0] for op in ops if isinstance(op, llvm.StoreOp)]
    return max(bits_of(v) for v in (*numbers, *loop.iter_args))
