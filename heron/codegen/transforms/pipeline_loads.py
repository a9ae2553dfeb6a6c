"""Loads of a loop's next round are made a round ahead, while this round computes.

    %r = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f32) {
      %v = tensor.extract %t[%k] : tensor<8xf32>
      … uses %v
    }
    ->
    %first = tensor.extract %t[%c0] : tensor<8xf32>
    %r, … = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero, %v = %first) -> (f32, f32) {
      %next = arith.minsi (%k + 1), 7
      %w = tensor.extract %t[%next] : tensor<8xf32>
      … uses %v, yields %w
    }

Of loops whose trip count is known, around no others, that load no more than a thread has room for: what is on its way
takes registers. The tensor must come from outside the loop, the index from the loop's variable by pure arithmetic. The
last round loads its own elements once more, so that there is no branch and nothing is read past the end. Loops that are
written out whole have all loads under way already.

On request (`heron codegen opt -p pipeline-loads`): docs/reference/emitters.md says why no pipeline has it.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import arith, scf, tensor, vector
from xdsl.dialects.builtin import ModuleOp, TensorType, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from heron.codegen.ir.builder import integer_constant
from heron.codegen.ir.editing import constant_value, functions, ops_of, replace, walk_blocks
from heron.codegen.ir.types import INDEX
from heron.codegen.transforms.lib.buffers import byte_size
from heron.codegen.transforms.optimize_loops import in_flight
from heron.codegen.transforms.options import TransformOptions

#: ops that compute the index of one load
MAX_SLICE = 16
_LOADS = (tensor.ExtractOp, vector.TransferReadOp)


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Rewrites every such loop of a GPU kernel."""
    if not options.is_gpu:
        return
    for function in functions(module):
        room = in_flight(function, options)
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if isinstance(op, scf.ForOp) and _rounds(op) > 1 and "heron.full_unroll" not in op.attributes:
                    _pipeline(op, room)


def _rounds(loop: scf.ForOp) -> int:
    lower, upper, step = (constant_value(v) for v in loop.operands[:3])
    if lower is None or upper is None or not step:
        return 0
    return -(-(upper - lower) // step)


def _pipeline(loop: scf.ForOp, room: int) -> None:
    body = loop.body.block
    if any(op.regions for op in body.ops):
        return
    slices = {op: below for op in body.ops if isinstance(op, _LOADS) and (below := _slice(op, body)) is not None}
    if not slices or sum(_bytes(op) for op in slices) > room:
        return
    last = _rounds(loop) - 1
    lower, _, step = (constant_value(v) for v in loop.operands[:3])
    assert lower is not None and step is not None
    outer = loop.parent
    assert outer is not None
    first = [_copy(op, below, body.args[0], loop.operands[0], loop) for op, below in slices.items()]
    # the next round's loads, at its variable or, in the last round, at this one's
    end = integer_constant(lower + last * step)
    outer.insert_op_before(end, loop)
    ahead = arith.AddiOp(body.args[0], loop.operands[2], result_type=INDEX)
    clamped = arith.MinSIOp(ahead, end, result_type=INDEX)
    start = body.first_op
    assert start is not None
    body.insert_ops_before([ahead, clamped], start)
    following = [_copy(op, below, body.args[0], clamped.result, start) for op, below in slices.items()]
    carried = [body.insert_arg(op.results[0].type, len(body.args)) for op in slices]
    for op, value in zip(slices, carried, strict=True):
        replace(op, [value])
    terminator = body.last_op
    assert terminator is not None
    terminator.operands = [*terminator.operands, *following]
    new = scf.ForOp.create(
        operands=[*loop.operands, *first],
        result_types=[v.type for v in terminator.operands],
        regions=[_moved(loop.body)],
        attributes=dict(loop.attributes),
    )
    outer.insert_op_before(new, loop)
    replace(loop, new.results[: len(loop.results)])


def _moved(region: Region) -> Region:
    new = Region()
    region.move_blocks(new)
    return new


def _slice(load: Operation, body: Block) -> list[Operation] | None:
    """The ops that compute the load's index in the loop, in order; None if it is not just the loop's variable."""
    source = load.operands[0]
    if source.owner is body or _inside(source, body):
        return None
    found: dict[Operation, None] = {}
    stack = list(load.operands[1:])
    while stack:
        value = stack.pop()
        if value.owner is body:
            if value is not body.args[0]:
                return None
            continue
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not body or op in found:
            continue
        if op.regions or isinstance(op, _LOADS) or not is_side_effect_free(op) or len(found) >= MAX_SLICE:
            return None
        found[op] = None
        stack.extend(op.operands)
    return [op for op in body.ops if op in found]


def _inside(value: SSAValue, body: Block) -> bool:
    return isinstance(value.owner, Operation) and value.owner.parent is body


def _copy(load: Operation, below: list[Operation], variable: SSAValue, at: SSAValue, before: Operation) -> SSAValue:
    """The load, and what computes its index, made again before an op for another value of the loop's variable."""
    block = before.parent
    assert block is not None
    values: dict[SSAValue, SSAValue] = {variable: at}
    for op in (*below, load):
        copy = op.clone(value_mapper=values)
        block.insert_op_before(copy, before)
    return values[load.results[0]]


def _bytes(load: Operation) -> int:
    type_ = load.results[0].type
    if isinstance(type_, VectorType):
        return prod(type_.get_shape()) * byte_size(type_.element_type)
    assert not isinstance(type_, TensorType)
    return byte_size(type_)
