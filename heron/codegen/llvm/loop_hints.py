"""The hints that LLVM gets about loops on a CPU: steps at a time, how they end, whether they are written out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import cast, get_args

from xdsl.dialects import arith, func, llvm, scf
from xdsl.dialects.builtin import AnyFloat, IntegerAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Operation, SSAValue

from heron.codegen.ir.accesses import address_of, array_of, bits_of, is_apart, is_in_place, place_of, sources_of
from heron.codegen.ir.editing import ops_within
from heron.codegen.llvm.emit import Emitter, is_set
from heron.codegen.llvm.inline import has, is_long, lines_of
from heron.codegen.llvm.inline.called import Calls
from heron.codegen.llvm.loop_chains import calls_in_turn, waits_for_itself

#: steps of a loop of which those left over from whole vectors may be much of the time
_SHORT = 1024
#: steps of a loop that is better off with one vector at a time: of two, the second would often be empty
_SHORTER = 128
#: steps of a loop that are too few for vectors whatever it does
_BORDER = 4
#: minima and maxima that one of a loop's bounds is looked for behind
_DEPTH = 5
#: steps of a loop that writes bytes to a column, up to which vectors are not worth their code
_COLUMN = 512
#: steps of a loop that LLVM makes one vector with a mask; bits of vectors of which several fill such a row
_TINY, _HALF_A_VECTOR = 16, 256
#: steps left over from whole vectors that cost more than masks in all vectors of a loop that accumulates
_LEFT_OVER = 4
#: functions that wait for each other, from which on four vectors at a time keep the processor busy
_LONG_CHAIN = 4
#: reads that are not side by side for each function of a loop, up to which vectors pay for it
_GAPS = 12
#: the hint that a loop ends with a part of a vector
_MASKED = '!"llvm.loop.vectorize.predicate.enable", i1 true'
#: the hints that a loop takes one step at a time
_SCALAR = '!"llvm.loop.vectorize.width", i32 1', '!"llvm.loop.interleave.count", i32 1'
#: steps of a loop that fill so little of a vector that it is written out, where the loop around it has so many times
#: as many
FEW_STEPS = 4
_MORE = 4
#: steps up to which the same is worth it where a step takes long: a loop along a short row, or one with functions
_HALF = 8
#: instructions that a loop may be once it is written out, and one of more than few steps for its functions
MOST_WRITTEN_OUT, _MOST_OF_FUNCTIONS = 1000, 300
#: extrema; steps of a loop of them, of integers, that masks are better for; steps that LLVM writes out in another loop
_INTEGER_EXTREMA = (arith.MaxUIOp, arith.MinUIOp, arith.MaxSIOp, arith.MinSIOp)
_FLOAT_EXTREMA = (arith.MaximumfOp, arith.MinimumfOp)
_TWO_VECTORS, _WRITTEN_OUT = 32, 32
#: steps of a loop that vectors of another kind than LLVM's choice are worth while for: it writes short ones out
_LONG = 64
#: the ops of random bits; 32-bit ones for each 64-bit one that vectors are made for
_ROUNDS = (arith.AddiOp, arith.XOrIOp, arith.OrIOp, arith.MuliOp)
_MANY_NARROW = 2
#: the types of floats
_FLOATS = frozenset(get_args(AnyFloat))
#: bits of numbers of which a vector has many, and ops for each look-up of one of them that are too few for vectors
_NARROW, _PER_LOOK_UP = 16, 16


def is_written_out(e: Emitter, op: scf.ForOp, lines: int, calls: Sequence[str]) -> bool:
    """Whether an innermost loop on a CPU has so few steps that vectors should go along the loop around it instead.

    LLVM's vectoriser looks at innermost loops alone, and a loop of two steps stays one of single numbers.
    ``heron.short`` marks a loop along a short row, ``heron.part`` one that vectors go along in any case.
    """
    around, is_short = op.parent_op(), is_set(op, "heron.short")
    if e.calls is None or len(op.attributes) > is_short:
        return False
    if not isinstance(around, scf.ForOp):  # a kernel of few elements: it would be a part of a vector
        return not e.calls.has_masks and 1 < known_steps(e, op) < FEW_STEPS and lines <= _MOST_OF_FUNCTIONS
    size = lines + sum(map(lines_of, filter(has, calls)))
    steps, outer = known_steps(e, op), _steps(e, around)
    most = MOST_WRITTEN_OUT if steps <= FEW_STEPS or is_short else _MOST_OF_FUNCTIONS if any(map(is_long, calls)) else 0
    if not 1 < steps <= min(_HALF, most // size):
        return False
    return outer == 0 or outer >= _MORE * steps or _is_short_row(e, around, steps, size)


def _is_short_row(e: Emitter, loop: scf.ForOp, inner: int, size: int) -> bool:
    """Whether a loop, of which each step is one of few steps, is so short that it is written out in turn: a small
    matrix, of many in the loop around both. Machines with masks have a vector for each row, others where it is half of
    one; a part of one is stored element by element there, which takes a dozen cycles."""
    steps, around = known_steps(e, loop), loop.parent_op()
    if e.calls is None or e.calls.has_masks or loop.attributes or not isinstance(around, scf.ForOp):
        return False
    if not 1 < steps <= FEW_STEPS or inner >= FEW_STEPS:
        return False
    outer = _steps(e, around)
    return inner * steps * size <= MOST_WRITTEN_OUT and (outer == 0 or outer >= _MORE * inner * steps)


def tests_both_around(op: scf.ForOp) -> bool:
    """Whether a loop has tests that change neither along it nor along the loop around it, and none of its steps.

    LLVM moves such a test out of both, with a copy of them for each outcome, as long as they are little code. A test of
    the step, as of a concatenation, it takes for an end of the loop, which it then does not write out.
    """
    around, own = op.parent_op(), op.regions[0].blocks[0].args[0]
    tests = [sources_of(o) for o in ops_within(op) if isinstance(o, arith.CmpiOp)]
    if any(own in places for places in tests):
        return False
    outer = around.regions[0].blocks[0].args[0] if isinstance(around, scf.ForOp) else own
    return any(outer not in places for places in tests)


def surely_runs(lower: str, upper: str) -> bool:
    """Whether both bounds are numbers with something between them."""
    return lower.isdecimal() and upper.isdecimal() and int(lower) < int(upper)


def loop_metadata(e: Emitter, op: Operation, calls: Sequence[str] = (), copies: int = 0, scalar: bool = False) -> str:
    """``heron.unroll`` = N (0 or 1: never), ``heron.vectorize`` = N lanes (0 or 1: never), ``heron.full_unroll``,
    ``heron.interleave`` = N vectors at a time, ``heron.mask_rest``: vectors to the end where the machine has masks.
    (``heron.short``: see `is_written_out`.)

    ``calls``: library functions an innermost loop calls. ``copies``: more calls of them, in copies of a loop in it.
    ``scalar``: its steps are not for vectors.
    """
    is_long_call = not scalar and any(map(is_long, calls))
    if isinstance(interleave := op.attributes.get("heron.interleave"), IntegerAttr):
        hints = [e.metadata_node(f'!"llvm.loop.interleave.count", i32 {interleave.value.data}')]
    else:
        hints = [*_long_functions(e, op, copies), *_despite_gaps(e, op, calls)] if is_long_call else []
    if not hints and not scalar:
        hints = [e.metadata_node(hint) for hint in _of_vectors(e, op, bool(calls), bool(copies))]
    if isinstance(unroll := op.attributes.get("heron.unroll"), IntegerAttr):
        count = unroll.value.data
        text = f'!"llvm.loop.unroll.count", i32 {count}' if count > 1 else '!"llvm.loop.unroll.disable"'
        hints.append(e.metadata_node(text))
    elif is_set(op, "heron.full_unroll"):
        hints.append(whole(e))
    hints += [e.metadata_node(hint) for hint in _asked_for(op) or _SCALAR * scalar]
    if is_set(op, "heron.parallel"):
        hints.append(e.metadata_node('!"llvm.loop.mustprogress"'))
    return f", !llvm.loop {e.distinct_metadata(', '.join(hints))}" if hints else ""


def _of_vectors(e: Emitter, op: Operation, has_calls: bool, has_copies: bool) -> Sequence[str]:
    """The hints for how a loop that LLVM makes vectors of ends: with a part of a vector, or with single elements."""
    if is_set(op, "heron.mask_rest") and _may_end_in_part(e, op) and len(op.operands) == 3:
        return [_MASKED]
    if has_copies or op.attributes:
        return []
    if _ends_in_part(e, op, has_calls):
        return [_MASKED]
    if has_calls:
        return []
    if not isinstance(op, scf.ForOp) or _steps(e, op) < _LONG:
        return _whole_vectors(e, op)
    return _wide_vectors(e, op) or ['!"llvm.loop.interleave.count", i32 2'] * waits_for_itself(op)


def _asked_for(op: Operation) -> Sequence[str]:
    """The hints for the vectors that a loop's attribute asks for, if it has one."""
    enable = '!"llvm.loop.vectorize.enable", i1'
    if isinstance(vectorize := op.attributes.get("heron.vectorize"), IntegerAttr):
        lanes = vectorize.value.data
        return [f"{enable} true", f'!"llvm.loop.vectorize.width", i32 {lanes}'] if lanes > 1 else [f"{enable} false"]
    return [f"{enable} true"] if is_set(op, "heron.vectorize") else []


def _ends_in_part(e: Emitter, op: Operation, is_rounded: bool) -> bool:
    """Whether a short loop leaves so many steps over from whole vectors that its last vector is better a part.

    It combines extrema of integers, or is around one loop that LLVM writes out: steps left over take long in both. Or
    it accumulates nothing. ``is_rounded``: it calls functions, such as those that round to 16 bits.
    """
    if e.calls is None or not isinstance(op, scf.ForOp) or not _may_end_in_part(e, op):
        return False
    steps, loops = known_steps(e, op), [o for o in op.regions[0].blocks[0].ops if isinstance(o, scf.ForOp)]
    if not loops and len(op.operands) == 3:
        return _stores_part(op, steps, e.calls.width, is_rounded)
    around = len(loops) == 1 and len(op.operands) == 3
    made = _combined(loops[0] if around else op)
    if made is None or not 0 < steps < (_SHORTER // 2 if around else _TWO_VECTORS):
        return False
    lanes = e.calls.width // max(bits_of(made.results[0]), 32)
    left, half = steps % lanes, lanes // 2
    if not around:
        return isinstance(made, _INTEGER_EXTREMA) and bits_of(made.results[0]) >= 32 and left > half
    inner, is_extremum = known_steps(e, loops[0]), isinstance(made, _FLOAT_EXTREMA)
    if not 1 < inner <= _WRITTEN_OUT or not (is_extremum or isinstance(made, arith.AddfOp)) or _reads_narrow_apart(op):
        return False
    return left >= _LEFT_OVER if is_extremum and inner > _HALF else left > half


def _may_end_in_part(e: Emitter, op: Operation) -> bool:
    """Whether the machine has masks, and a loop does not write a short row in place.

    A store under a mask keeps what follows it from being read before it is in the cache, and the first vector of the
    next row seems to be a part of it: rows of 13 floats that were written where they were read took 6 ns each, and 1
    without masks.
    """
    if e.calls is None or not e.calls.has_masks:
        return False
    is_row = isinstance(op.parent_op(), scf.ForOp) and 0 < _steps(e, op) < _SHORTER // 2
    return not is_row or not is_in_place(op)


def _whole_vectors(e: Emitter, op: Operation) -> list[str]:
    """The hints for whole vectors, and single elements after them, along a row that is so short that LLVM would have
    one vector with a mask: where that is written in place, and on any machine without masks, which takes a dozen cycles
    for such a store."""
    if e.calls is None or not isinstance(op, scf.ForOp) or e.calls.has_masks and _may_end_in_part(e, op):
        return []
    steps, ops = known_steps(e, op), ops_within(op)[1:]
    inside = [o for o in ops if isinstance(o, llvm.LoadOp | llvm.StoreOp)]
    if not FEW_STEPS < steps < _TINY or not _is_surely_vectors(op, ops, inside):
        return []
    if not e.calls.has_masks and any(o.regions for o in ops):  # LLVM may cut the loop at a test, and tell the user so
        return []
    bits = max(bits_of(o.operands[0] if isinstance(o, llvm.StoreOp) else o.results[0]) for o in inside)
    lanes = min((_HALF_A_VECTOR // max(bits, 32), 4, 2), key=lambda n: steps // n + steps % n)
    enable, width = "llvm.loop.vectorize.enable", "llvm.loop.vectorize.width"
    return [f'!"{enable}", i1 true', f'!"{width}", i32 {lanes}']


def _wide_vectors(e: Emitter, op: Operation) -> list[str]:
    """The hint for vectors full of 32-bit numbers in a loop that computes 64-bit numbers from many of these, as random
    integers are: LLVM fills vectors with the widest type in memory, and half of each other one would be empty."""
    if e.calls is None:
        return []
    ops = list(op.regions[0].blocks[0].ops)
    kept = [*op.operands[3:], *(o.operands[0] for o in ops if isinstance(o, llvm.StoreOp))]
    made = [bits_of(o.results[0]) for o in ops if type(o) in _ROUNDS]
    narrow, wide = made.count(32), made.count(64)
    if max(map(bits_of, kept), default=0) < 64 or not wide or narrow < _MANY_NARROW * wide:
        return []
    return [f'!"llvm.loop.vectorize.width", i32 {e.calls.width // 32}']


def _is_surely_vectors(
    op: scf.ForOp, ops: Sequence[Operation], inside: Sequence[llvm.LoadOp | llvm.StoreOp], gaps: bool = False
) -> bool:
    """Whether LLVM can make vectors of a loop; where it was asked to and cannot it tells the user so.

    ``ops``: those in the loop. ``inside``: the loads and stores among them. ``gaps``: it calls functions that have
    vectors, may read numbers that are the same number of others apart, and carry a sum, but takes no branch.
    """
    if len(op.operands) > 3 and not (gaps and _sums(op)):
        return False
    if any(isinstance(o, func.CallOp) and not gaps or o.regions and (gaps or not isinstance(o, scf.IfOp)) for o in ops):
        return False
    own = op.regions[0].blocks[0].args[0]
    written = {array_of(address_of(o)): place_of(o) for o in inside if isinstance(o, llvm.StoreOp)}
    for o in inside:
        place, array = place_of(o), array_of(address_of(o))
        moves = isinstance(address_of(o).owner, llvm.GEPOp) and own in sources_of(cast(Operation, address_of(o).owner))
        may_be_apart = gaps and isinstance(o, llvm.LoadOp) and _is_even(place[-1], own)
        if is_apart(address_of(o), op) and not may_be_apart:
            return False
        if array in written and (not moves or written[array] != place):
            return False
    return True


def _is_even(place: SSAValue, own: SSAValue) -> bool:
    """Whether a place moves on by the same number with each step of a loop, `own`: LLVM takes a remainder for such a
    place, too, and then finds that it is none."""
    made = place.owner
    if place is own or not isinstance(made, Operation):
        return True
    if isinstance(made, arith.AddiOp | arith.SubiOp | arith.MuliOp | arith.IndexCastOp):
        return all(_is_even(v, own) for v in made.operands)
    return own not in sources_of(made)


def _sums(op: Operation) -> bool:
    """Whether a loop carries one value, a sum in any order."""
    made = _combined(op)
    return isinstance(made, arith.AddfOp) and FastMathFlag.REASSOC in made.fastmath.data


def _stores_part(op: Operation, steps: int, width: int, is_rounded: bool) -> bool:
    """The same of a loop that reads and writes numbers side by side: of a few vectors, and of any of narrow numbers, of
    which LLVM does more one by one."""
    inside = [o for o in ops_within(op) if isinstance(o, llvm.LoadOp | llvm.StoreOp)]
    stored = [o for o in inside if isinstance(o, llvm.StoreOp)]
    if not stored or any(is_apart(o.operands[isinstance(o, llvm.StoreOp)], op) for o in inside):
        return False
    bits = max(bits_of(o.operands[0] if isinstance(o, llvm.StoreOp) else o.results[0]) for o in inside)
    if bits >= 32:
        lanes = width // bits
        return 0 < steps < _TWO_VECTORS and steps % lanes * 4 >= lanes * 3
    most = _SHORTER // 2 if is_rounded else width // bits
    return 0 < steps < most and steps % 16 > 8


def _combined(op: Operation) -> Operation | None:
    """The op that makes the one value that a loop carries out of what it was."""
    block = op.regions[0].blocks[0]
    made = block.last_op.operands[0].owner if len(block.args) == 2 and block.last_op is not None else None
    return made if isinstance(made, Operation) and block.args[1] in made.operands else None


def whole(e: Emitter) -> str:
    """The hint that a loop is to be written out."""
    return e.metadata_node('!"llvm.loop.unroll.full"')


def _long_functions(e: Emitter, op: Operation, copies: int) -> list[str]:
    """Two vectors of a long function at a time keep the processor busy, and four of functions that wait for each other.
    More are only more code, and so are two where `copies` of the function do not wait.

    Steps left over from whole vectors would cost as much as a vector each. The last vector of a short loop is a part
    of one instead, where the machine has masks. Such a loop may read a column of an array to its end, too. A loop that
    accumulates chooses by mask in each step, which only pays where it is shorter and several steps are left over.
    With masks, numbers of 8 or 16 bits of a column are read and written one by one, each with a test of its own. A loop
    that writes bytes so has one vector at a time, or none; other loops have no masks then.
    """
    steps = _steps(e, op)
    is_short = e.calls is not None and e.calls.has_masks and 0 < steps < _SHORT
    # where a loop is written out in this one, its bytes lie side by side
    writes_bytes = is_short and 8 in _written_apart(op, op.regions[0].blocks[0].ops)
    if writes_bytes and steps <= _COLUMN:
        return [e.metadata_node(hint) for hint in _SCALAR]
    masked = is_short and e.calls is not None and _may_mask(e.calls, op, steps)
    masked = masked and not (_writes_apart(op) and is_in_place(op))
    alone = copies > 1 or writes_bytes or masked and steps < _SHORTER
    together = 1 if alone else 4 if calls_in_turn(op) >= _LONG_CHAIN else 2
    hints = [f'!"llvm.loop.interleave.count", i32 {together}']
    if masked:
        hints.append(_MASKED)
    return [e.metadata_node(hint) for hint in hints]


def _despite_gaps(e: Emitter, op: Operation, calls: Sequence[str]) -> list[str]:
    """The hint for vectors of a short loop of long functions that reads numbers with gaps between them.

    LLVM takes a call for less time than it is, and without masks such a read for more: it stayed with single numbers.
    Of as many functions as a vector has lanes it makes vectors along the row, and of longer loops vectors of its own.
    """
    functions, steps = sum(map(is_long, calls)), _steps(e, op)
    if not functions or not 0 < steps < _TWO_VECTORS or not all(map(has, calls)):
        return []
    if e.calls is None or e.calls.has_masks or not isinstance(op, scf.ForOp):
        return []
    ops = ops_within(op)[1:]
    inside = [o for o in ops if isinstance(o, llvm.LoadOp | llvm.StoreOp)]
    bits = max([bits_of(r) for o in ops for r in o.results if type(r.type) in _FLOATS], default=0)
    lanes, gaps = e.calls.width // max(bits, 32), sum(is_apart(address_of(o), op) for o in inside)
    if not functions < lanes <= steps or not functions <= gaps <= _GAPS * functions:
        return []
    if sum(isinstance(o, func.CallOp) for o in ops) > len(calls) or not _is_surely_vectors(op, ops, inside, gaps=True):
        return []
    return [e.metadata_node(f'!"llvm.loop.vectorize.width", i32 {lanes}')]


def _may_mask(calls: Calls, op: Operation, steps: int) -> bool:
    """Whether masks are worth their time: in a loop that accumulates nothing they are."""
    if 16 in _written_apart(op, ops_within(op)) or _reads_narrow_apart(op):
        return False
    bits = [bits_of(v) for v in op.operands[3:]]
    return not bits or steps < _SHORTER and steps % (calls.width // max(bits)) >= _LEFT_OVER


def _reads_narrow_apart(op: Operation) -> bool:
    """Whether a loop reads numbers of 8 or 16 bits that do not follow each other."""
    reads = (o for o in ops_within(op) if isinstance(o, llvm.LoadOp) and bits_of(o.results[0]) < 32)
    return any(is_apart(o.operands[0], op) for o in reads)


def _writes_apart(loop: Operation) -> bool:
    """Whether a loop writes numbers that do not follow each other."""
    return any(is_apart(o.operands[1], loop) for o in ops_within(loop) if isinstance(o, llvm.StoreOp))


def _written_apart(loop: Operation, ops: Iterable[Operation]) -> set[int]:
    """The bits of the numbers of 8 or 16 bits that ops of a loop write such that they do not follow each other."""
    writes = (o for o in ops if isinstance(o, llvm.StoreOp) and bits_of(o.operands[0]) < 32)
    return {bits_of(o.operands[0]) for o in writes if is_apart(o.operands[1], loop)}


def is_scalar(e: Emitter, op: scf.ForOp) -> bool:
    """Whether an innermost loop on a CPU is not for vectors."""
    return e.calls is not None and (_is_short(e, op) or _looks_up_narrow(op))


def _is_short(e: Emitter, op: scf.ForOp) -> bool:
    """Whether a loop that accumulates nothing has next to no steps, as the border of an array has that is cut into
    pieces. LLVM does not see it."""
    lower, upper, _, *carried = op.operands
    return not carried and not surely_runs(e.names[lower], e.names[upper]) and _distance(e, upper, lower) <= _BORDER


def _distance(e: Emitter, high: SSAValue, low: SSAValue, depth: int = _DEPTH) -> float:
    """The most that a number may be above another one, as far as `depth` minima and maxima tell."""
    if high is low:
        return 0
    numbers = e.names[high], e.names[low]
    found = int(numbers[0]) - int(numbers[1]) if all(map(_is_number, numbers)) else math.inf
    for value, larger, smaller in (low, arith.MinSIOp, arith.MaxSIOp), (high, arith.MaxSIOp, arith.MinSIOp):
        made = value.owner
        if depth and isinstance(made, larger | smaller):
            pairs = [(high, v) if value is low else (v, low) for v in made.operands]
            choose = max if isinstance(made, larger) else min
            found = min(found, choose(_distance(e, *pair, depth - 1) for pair in pairs))
    return found


def _is_number(name: str) -> bool:
    return name.removeprefix("-").isdecimal()


def _looks_up_narrow(op: Operation) -> bool:
    """Whether a loop over integers of 8 or 16 bits looks them up in tables, and does little else. In vectors of so many
    lanes each look-up is code of its own, and takes as long as outside of a vector."""
    body = op.regions[0].blocks[0]
    if any(map(_is_wide, body.ops)):  # as in almost all loops: no need to look into their branches
        return False
    inside = ops_within(op)
    if any(map(_is_wide, inside)):
        return False
    pointers = (o.operands[0].owner for o in inside if isinstance(o, llvm.LoadOp))
    found = sum(isinstance(p, llvm.GEPOp) and _is_loaded(p.operands[-1], set()) for p in pointers)
    return 0 < len(inside) <= found * _PER_LOOK_UP


def _is_wide(op: Operation) -> bool:
    """Whether an op computes with floats, or reads or writes numbers that are not narrow."""
    if isinstance(op, llvm.LoadOp):
        return bits_of(op.results[0]) > _NARROW
    if isinstance(op, llvm.StoreOp):
        return bits_of(op.operands[0]) > _NARROW
    return any(type(r.type) in _FLOATS for r in op.results)


def _is_loaded(place: SSAValue, seen: set[Operation]) -> bool:
    """Whether a place is computed from something in memory."""
    made = place.owner
    if not isinstance(made, Operation) or made in seen:
        return False
    seen.add(made)
    return isinstance(made, llvm.LoadOp) or any(_is_loaded(v, seen) for v in made.operands)


def _steps(e: Emitter, op: Operation) -> int:
    """The number of steps of a loop, that of all work items where its bounds are not numbers; 0: unknown."""
    return known_steps(e, op) or e.items


def known_steps(e: Emitter, op: Operation) -> int:
    """The number of steps of a loop whose bounds are numbers; else 0."""
    lower, upper, step = (e.names[v] for v in op.operands[:3])
    if surely_runs(lower, upper) and step.isdecimal():
        return -(-(int(upper) - int(lower)) // int(step))
    return 0
