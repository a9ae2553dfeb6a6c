"""Barriers and warp shuffles → calls of NVVM intrinsics.

`sync_threads` becomes `llvm.nvvm.barrier.cta.sync.aligned.all(0)`. `shuffle_reduce` becomes, for each distance N, N/2,
…, 1, a `shfl.sync.down` of every value by that distance with a full mask and a call of the combiner; `shuffle_up`
becomes a `shfl.sync.up` of every value, `shuffle_first` a `shfl.sync.idx` that reads the first lane of each group,
`shuffle_from` one that reads the lane named, `match_any` a `match.any.sync`, `ballot` a `vote.ballot.sync`.
Values of 64 bits are shuffled as two halves; bf16, f16 and small integers travel in 32 bits. Runs while values are
still tensors, so that the combiner calls can be inlined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects import arith, complex
from xdsl.dialects.builtin import ComplexType, Float32Type, IntegerType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from heron.codegen.ir.dialects.xla_gpu import (
    BallotOp,
    MatchAnyOp,
    PureCallOp,
    ShuffleFirstOp,
    ShuffleFromOp,
    ShuffleReduceOp,
    ShuffleUpOp,
    SyncThreadsOp,
)
from heron.codegen.transforms.lib.buffers import byte_size
from heron.codegen.transforms.lib.build import (
    I32,
    I64,
    NO_FLAGS,
    Constants,
    Inserter,
    call,
    declare,
    function_table,
    functions,
    ops_of,
    replace,
    walk_blocks,
)
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError

BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
SHUFFLE = "llvm.nvvm.shfl.sync."
BALLOT = "llvm.nvvm.vote.ballot.sync"
MATCH = "llvm.nvvm.match.any.sync.i32"
FULL_MASK = -1
#: the lane beyond which a shuffle gives a lane its own value, by direction
CLAMP = {"down": 31, "up": 0, "idx": 31}
WARP = 32
_LOWERED = frozenset({SyncThreadsOp, ShuffleReduceOp, ShuffleUpOp, ShuffleFirstOp, ShuffleFromOp, MatchAnyOp, BallotOp})


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Lowers the thread-level ops of the module; CPU kernels have none.

    Raises:
        HeronError: GEN125 when a CPU kernel has barriers or shuffles.
    """
    table = function_table(module)
    for function in functions(module):
        lowering = _Lowering(module, table, Constants(function.body.block))
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if type(op) not in _LOWERED:
                    continue
                if not options.is_gpu:
                    raise HeronError("GEN125", "a CPU kernel has no threads to synchronise", where=str(op))
                lowering.lower(op, Inserter(block, op, {}, lowering.constants))


class Move(NamedTuple):
    """Values come `down` from lanes above, `up` from lanes below, or from the lane `idx` names; groups of `lanes`
    lanes keep to themselves."""

    direction: str
    distance: int
    lanes: int = WARP


class _Lowering:
    def __init__(self, module: ModuleOp, table: dict[str, FuncOp], constants: Constants) -> None:
        self.module, self.table, self.constants = module, table, constants

    def lower(self, op: Operation, place: Inserter) -> None:
        if isinstance(op, SyncThreadsOp):
            callee = declare(self.module, self.table, BARRIER, [I32], [])
            place.insert(call(callee, [self.constants.get(0, I32)], []))
            replace(op, op.operands)
            return
        if isinstance(op, ShuffleUpOp):
            move = Move("up", op.distance.value.data)
            replace(op, [self._shuffle(v, move, place) for v in op.operands])
            return
        if isinstance(op, ShuffleFirstOp):
            move = Move("idx", 0, op.lanes.value.data)
            replace(op, [self._shuffle(v, move, place) for v in op.operands])
            return
        if isinstance(op, ShuffleFromOp):
            replace(op, [self._word(f"{SHUFFLE}idx.i32", [op.value, op.lane, CLAMP["idx"]], place)])
            return
        if isinstance(op, BallotOp):
            replace(op, [self._word(BALLOT, [op.condition], place)])
            return
        if isinstance(op, MatchAnyOp):
            replace(op, [self._word(MATCH, [op.value], place)])
            return
        assert isinstance(op, ShuffleReduceOp)
        values: Sequence[SSAValue] = op.operands
        types = [v.type for v in values]
        distance = op.max_distance.value.data
        while distance:
            others = [self._shuffle(v, Move("down", distance), place) for v in values]
            combined = PureCallOp(op.combiner.root_reference.data, [*values, *others], types)
            values = place.insert(combined).results
            distance //= 2
        replace(op, values)

    def _shuffle(self, value: SSAValue, move: Move, place: Inserter) -> SSAValue:
        """The value of another lane."""
        type_ = value.type
        if isinstance(type_, ComplexType):
            parts = [
                self._shuffle(place.unary(part, value, type_.element_type), move, place)
                for part in (complex.ReOp, complex.ImOp)
            ]
            return place.insert(complex.CreateOp.create(operands=parts, result_types=(type_,))).results[0]
        if isinstance(type_, Float32Type):
            return self._call(value, move, "f32", place)
        bits = type_.width.data if isinstance(type_, IntegerType) else 8 * byte_size(type_)
        if bits == 64:
            return self._halves(value, move, place)
        if bits > 32:
            raise HeronError("GEN126", f"no warp shuffle of {bits}-bit values", where=str(type_))
        word = value
        if not isinstance(type_, IntegerType):
            word = place.unary(arith.BitcastOp, value, IntegerType(bits))
        if bits < 32:
            word = place.unary(arith.ExtUIOp, word, I32)
        word = self._call(word, move, "i32", place)
        if bits < 32:
            word = place.unary(arith.TruncIOp, word, IntegerType(bits))
        return word if isinstance(type_, IntegerType) else place.unary(arith.BitcastOp, word, type_)

    def _word(self, name: str, arguments: Sequence[SSAValue | int], place: Inserter) -> SSAValue:
        """A call of an intrinsic of the whole warp that gives a word."""
        words = [self.constants.get(a, I32) if isinstance(a, int) else a for a in (FULL_MASK, *arguments)]
        callee = declare(self.module, self.table, name, [w.type for w in words], [I32])
        return place.insert(call(callee, words, [I32])).results[0]

    def _halves(self, value: SSAValue, move: Move, place: Inserter) -> SSAValue:
        type_ = value.type
        wide = value if isinstance(type_, IntegerType) else place.unary(arith.BitcastOp, value, I64)
        shift = place.const(32, I64)
        low = self._call(place.unary(arith.TruncIOp, wide, I32), move, "i32", place)
        upper = place.binary(arith.ShRUIOp, wide, shift)
        high = self._call(place.unary(arith.TruncIOp, upper, I32), move, "i32", place)
        high64 = place.binary(arith.ShLIOp, place.unary(arith.ExtUIOp, high, I64), shift, NO_FLAGS)
        joined = place.binary(arith.OrIOp, high64, place.unary(arith.ExtUIOp, low, I64))
        return joined if isinstance(type_, IntegerType) else place.unary(arith.BitcastOp, joined, type_)

    def _call(self, word: SSAValue, move: Move, suffix: str, place: Inserter) -> SSAValue:
        name = f"{SHUFFLE}{move.direction}.{suffix}"
        callee = declare(self.module, self.table, name, [I32, word.type, I32, I32], [word.type])
        groups = (WARP - move.lanes) << 8  # PTX ISA, shfl.sync: the bits of a lane's number that stay as they are
        mask, clamp = self.constants.get(FULL_MASK, I32), self.constants.get(groups | CLAMP[move.direction], I32)
        arguments = [mask, word, self.constants.get(move.distance, I32), clamp]
        return place.insert(call(callee, arguments, [word.type])).results[0]
