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

from heron.codegen.ir.builder import NO_FLAGS, Builder, Constants
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
from heron.codegen.ir.editing import call, declare, function_table, functions, ops_of, replace, walk_blocks
from heron.codegen.ir.types import I32, I64
from heron.codegen.transforms.lib.buffers import byte_size
from heron.codegen.transforms.options import TransformOptions
from heron.errors import HeronError
from heron.targets import WARP

BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
SHUFFLE = "llvm.nvvm.shfl.sync."
BALLOT = "llvm.nvvm.vote.ballot.sync"
MATCH = "llvm.nvvm.match.any.sync.i32"
FULL_MASK = -1
#: the lane beyond which a shuffle gives a lane its own value, by direction
CLAMP = {"down": 31, "up": 0, "idx": 31}
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
                lowering.lower(op, Builder(block, lowering.constants, before=op, known={}))


class Move(NamedTuple):
    """Values come `down` from lanes above, `up` from lanes below, or from the lane `idx` names; groups of `lanes`
    lanes keep to themselves."""

    direction: str
    distance: int
    lanes: int = WARP


class _Lowering:
    def __init__(self, module: ModuleOp, table: dict[str, FuncOp], constants: Constants) -> None:
        self.module, self.table, self.constants = module, table, constants

    def lower(self, op: Operation, builder: Builder) -> None:
        if isinstance(op, SyncThreadsOp):
            callee = declare(self.module, self.table, BARRIER, [I32], [])
            builder.add(call(callee, [self.constants.integer(0, I32)], []))
            replace(op, op.operands)
            return
        if isinstance(op, ShuffleUpOp):
            move = Move("up", op.distance.value.data)
            replace(op, [self._shuffle(v, move, builder) for v in op.operands])
            return
        if isinstance(op, ShuffleFirstOp):
            move = Move("idx", 0, op.lanes.value.data)
            replace(op, [self._shuffle(v, move, builder) for v in op.operands])
            return
        if isinstance(op, ShuffleFromOp):
            replace(op, [self._word(f"{SHUFFLE}idx.i32", [op.value, op.lane, CLAMP["idx"]], builder)])
            return
        if isinstance(op, BallotOp):
            replace(op, [self._word(BALLOT, [op.condition], builder)])
            return
        if isinstance(op, MatchAnyOp):
            replace(op, [self._word(MATCH, [op.value], builder)])
            return
        assert isinstance(op, ShuffleReduceOp)
        values: Sequence[SSAValue] = op.operands
        types = [v.type for v in values]
        distance = op.max_distance.value.data
        while distance:
            others = [self._shuffle(v, Move("down", distance), builder) for v in values]
            combined = PureCallOp(op.combiner.root_reference.data, [*values, *others], types)
            values = builder.add(combined).results
            distance //= 2
        replace(op, values)

    def _shuffle(self, value: SSAValue, move: Move, builder: Builder) -> SSAValue:
        """The value of another lane."""
        type_ = value.type
        if isinstance(type_, ComplexType):
            parts = [
                self._shuffle(builder.op(part, value, type=type_.element_type), move, builder)
                for part in (complex.ReOp, complex.ImOp)
            ]
            return builder.add(complex.CreateOp.create(operands=parts, result_types=(type_,))).results[0]
        if isinstance(type_, Float32Type):
            return self._call(value, move, "f32", builder)
        bits = type_.width.data if isinstance(type_, IntegerType) else 8 * byte_size(type_)
        if bits == 64:
            return self._halves(value, move, builder)
        if bits > 32:
            raise HeronError("GEN126", f"no warp shuffle of {bits}-bit values", where=str(type_))
        word = value
        if not isinstance(type_, IntegerType):
            word = builder.op(arith.BitcastOp, value, type=IntegerType(bits))
        if bits < 32:
            word = builder.op(arith.ExtUIOp, word, type=I32)
        word = self._call(word, move, "i32", builder)
        if bits < 32:
            word = builder.op(arith.TruncIOp, word, type=IntegerType(bits))
        return word if isinstance(type_, IntegerType) else builder.op(arith.BitcastOp, word, type=type_)

    def _word(self, name: str, arguments: Sequence[SSAValue | int], builder: Builder) -> SSAValue:
        """A call of an intrinsic of the whole warp that gives a word."""
        words = [self.constants.integer(a, I32) if isinstance(a, int) else a for a in (FULL_MASK, *arguments)]
        callee = declare(self.module, self.table, name, [w.type for w in words], [I32])
        return builder.add(call(callee, words, [I32])).results[0]

    def _halves(self, value: SSAValue, move: Move, builder: Builder) -> SSAValue:
        type_ = value.type
        wide = value if isinstance(type_, IntegerType) else builder.op(arith.BitcastOp, value, type=I64)
        shift = builder.integer(32, I64)
        low = self._call(builder.op(arith.TruncIOp, wide, type=I32), move, "i32", builder)
        upper = builder.op(arith.ShRUIOp, wide, shift)
        high = self._call(builder.op(arith.TruncIOp, upper, type=I32), move, "i32", builder)
        high64 = builder.op(arith.ShLIOp, builder.op(arith.ExtUIOp, high, type=I64), shift, properties=NO_FLAGS)
        joined = builder.op(arith.OrIOp, high64, builder.op(arith.ExtUIOp, low, type=I64))
        return joined if isinstance(type_, IntegerType) else builder.op(arith.BitcastOp, joined, type=type_)

    def _call(self, word: SSAValue, move: Move, suffix: str, builder: Builder) -> SSAValue:
        name = f"{SHUFFLE}{move.direction}.{suffix}"
        callee = declare(self.module, self.table, name, [I32, word.type, I32, I32], [word.type])
        groups = (WARP - move.lanes) << 8  # PTX ISA, shfl.sync: the bits of a lane's number that stay as they are
        mask, clamp = (
            self.constants.integer(FULL_MASK, I32),
            self.constants.integer(groups | CLAMP[move.direction], I32),
        )
        arguments = [mask, word, self.constants.integer(move.distance, I32), clamp]
        return builder.add(call(callee, arguments, [word.type])).results[0]
