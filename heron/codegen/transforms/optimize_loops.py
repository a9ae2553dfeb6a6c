"""Unroll factors of loops: whole where they index vectors, up to the registers where they accumulate.

A vector lives in registers only where positions in it are constants, so that a loop that indexes one by its variable is
written out whole.

    scf.for %s = %c0 to %c4 step %c1 { %v = vector.extract %v4[%s] … }
    ->
    scf.for … { … } {heron.full_unroll}

An accumulating loop around others waits for memory once each time it goes around. Written out several times it has the
loads of as many rounds under way, for as many registers. How many there are is data: the registers of a core over the
threads that the launch puts on it; loads may take half of them. A launch that fills the machine leaves 64 bytes a
thread, and rounds that load as much stay single (ptxas would write them out, for four times the registers); one of few
blocks leaves ten times that. Nor do the copies become more code than a kernel should have (`heron.copies`).

    scf.for %r = %c0 to %c6 step %c1 iter_args(%sum = …) { %v = vector.transfer_read … : vector<4xf32> … }
    ->
    scf.for … { … } {heron.unroll = 3}

An array of a thread's own (`tensor.empty`) is like a vector: loops around its accesses are written out whole, which
leaves it in registers. Kernels that keep a row there (`softmax`) have a few rounds, each a vector long.

The step marks loops; LLVM writes iterations out, which takes a fiftieth of the time that copying them here would. Other
loops are left to LLVM, which knows what iterations cost. It matters to reductions of rows (`gpt2_train_step`,
`layernorm`).
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import scf, tensor, vector
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, UnitAttr, VectorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from heron.codegen.ir.builder import int_attr
from heron.codegen.ir.editing import constant_value, functions, walk_blocks
from heron.codegen.ir.types import I64
from heron.codegen.transforms.lib.buffers import byte_size
from heron.codegen.transforms.options import TransformOptions
from heron.codegen.transforms.vectorize_loads_stores import trip_count

#: attribute of a kernel: copies of the code for an element that it may have
COPIES = "heron.copies"
#: iterations a loop that is written out may have
MOST = 16
#: bytes of loads a thread has under way that are enough where a core has all the threads it can take
IN_FLIGHT = 64
#: bytes of a register
REGISTER = 4


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Marks every such loop."""
    for function in functions(module):
        for block in walk_blocks(function.body.block):
            for op in block.ops:
                if isinstance(op, (vector.ExtractOp, vector.InsertOp)):
                    _mark(op)
                elif isinstance(op, tensor.EmptyOp) and options.is_gpu:
                    _mark_around(op)
        if options.is_gpu:
            _Accumulating(in_flight(function, options), copies_of(function)).loaded(function.body.block)


def in_flight(function: FuncOp, options: TransformOptions) -> int:
    """Bytes of loads a thread of the kernel may have under way: half of its share of a core's registers."""
    device, launch = options.device, options.launches.get(function.sym_name.data)
    if device is None or launch is None:
        return IN_FLIGHT
    blocks = -(-prod(launch.grid) // device.cores)
    threads = min(blocks * prod(launch.block), device.threads_per_core)
    return min(device.registers_per_thread, device.registers_per_core // threads) * REGISTER // 2


def copies_of(function: FuncOp) -> int:
    """Copies of the code for an element that the kernel may have."""
    given = function.attributes.get(COPIES)
    return given.value.data if isinstance(given, IntegerAttr) else MOST * MOST


class _Accumulating:
    """Decides about the accumulating loops of a function; ``room``: bytes of loads that may be under way; ``copies``:
    those of the code for an element that there may be."""

    def __init__(self, room: int, copies: int) -> None:
        self.room, self.copies = room, copies

    def loaded(self, block: Block) -> int:
        """Bytes that one run of the block loads."""
        total = 0
        for op in block.ops:
            if isinstance(op, (tensor.ExtractOp, vector.TransferReadOp)):
                type_ = op.results[0].type
                count = prod(type_.get_shape()) if isinstance(type_, VectorType) else 1
                total += count * byte_size(type_.element_type if isinstance(type_, VectorType) else type_)
            elif op.regions:
                inside = sum(self.loaded(inner) for region in op.regions for inner in region.blocks)
                total += inside * self._rounds(op, inside) if isinstance(op, scf.ForOp) else inside
        return total

    def _rounds(self, loop: scf.ForOp, loads: int) -> int:
        """The trip count of the loop, 1 if unknown; marks the loop if it accumulates around others."""
        lower, upper, step = (constant_value(v) for v in loop.operands[:3])
        rounds = 1 if lower is None or upper is None or not step else max(1, -(-(upper - lower) // step))
        if loads >= IN_FLIGHT and "heron.full_unroll" not in loop.attributes and _accumulates_around_loops(loop):
            inside = max(trip_count(op) or 1 for op in loop.walk() if isinstance(op, scf.ForOp) and op is not loop)
            times = min(rounds, self.room // loads, self.copies // inside)
            while times > 1 and rounds % times:
                times -= 1
            loop.attributes["heron.unroll"] = int_attr(max(1, times), I64)
        return rounds


def _accumulates_around_loops(loop: scf.ForOp) -> bool:
    if all(isinstance(v.type, TensorType) for v in loop.operands[3:]):
        return False
    return any(isinstance(op, scf.ForOp) for op in loop.walk() if op is not loop)


def _mark_around(array: tensor.EmptyOp) -> None:
    """Marks the loops of the array's block in which it is read or written."""
    work: list[SSAValue] = [array.tensor]
    while work:
        for use in work.pop().uses:
            user = use.operation
            loop: Operation | None = user
            while loop is not None:
                if isinstance(loop, scf.ForOp):
                    loop.attributes["heron.full_unroll"] = UnitAttr()
                loop = loop.parent_op() if loop.parent is not array.parent else None
            if isinstance(user, scf.ForOp):
                work += (user.body.block.args[use.index - 2], user.results[use.index - 3])
            elif isinstance(user, scf.YieldOp):
                work.append(user.parent_op().results[use.index])  # pyright: ignore[reportOptionalMemberAccess]
            elif isinstance(user, (tensor.InsertOp, vector.TransferWriteOp)):
                work.append(user.results[0])


def _mark(op: vector.ExtractOp | vector.InsertOp) -> None:
    positions = op.operands[1 if isinstance(op, vector.ExtractOp) else 2 :]
    for position in positions:
        loop = position.owner.parent_op() if not hasattr(position, "op") else None
        if isinstance(loop, scf.ForOp) and position is loop.body.block.args[0] and 0 < (trip_count(loop) or 0) <= MOST:
            loop.attributes["heron.full_unroll"] = UnitAttr()
