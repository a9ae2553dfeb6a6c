"""Results of functions along a short row are gathered in a tile before they are written over what was read.

    scf.for %j = 0 to 13 { %x = %in[%i, %j]; %y = math.tanh %x; insert %y into %out[%i, %j] }      %out has %in's memory
    ->
    scf.for %j = 0 to 13 { %x = %in[%i, %j]; %y = math.tanh %x; insert %y into %tile[%j] }
    scf.for %j = 0 to 13 { %y = %tile[%j]; insert %y into %out[%i, %j] }

A short loop with functions is one vector with a mask. A store under a mask keeps what follows it from being read before
it is in the cache, and the vector of the next row seems to be a part of it: rows would wait for each other's functions.

CPU kernels only, of single precision: functions of doubles take so long that the next row waits for little else. It
matters to loops whose state is an array of narrow rows. A machine without masks ends a row in place with a smaller
vector for each power of two that is left over (`overlap_vectors.py`): rows that need several of them are staged there.
"""

from __future__ import annotations

from xdsl.dialects import scf, tensor
from xdsl.dialects.builtin import Float32Type, ModuleOp, TensorType
from xdsl.ir import Block, Operation, Region, SSAValue

from heron.codegen.ir.builder import Builder, Constants
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp
from heron.codegen.ir.editing import (
    constant_value,
    functions,
    ops_of,
    ops_within,
    overwritten_inputs,
    replace,
    walk_blocks,
)
from heron.codegen.ir.types import INDEX
from heron.codegen.transforms.lib.math_names import FUNCTIONS
from heron.codegen.transforms.options import TransformOptions

#: rounds of a loop that is written out, or has so many vectors that waiting for one is little of its time
FEWEST, MOST = 8, 32
#: elements of half a vector: loops of whole ones need no masks
WHOLE = 8


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Stages every such loop of a CPU kernel."""
    if options.is_gpu:
        return
    for function in functions(module):
        overwritten = overwritten_inputs(function)
        if not overwritten:
            continue
        constants = Constants(function.body.block)
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if type(op) is scf.ForOp and (insert := _written(op, overwritten, options.vector_bits)) is not None:
                    _stage(op, insert, constants)


def _written(loop: scf.ForOp, overwritten: set[SSAValue], vector_bits: int) -> tensor.InsertOp | None:
    """The one write of a loop with functions along a short row, around which what is overwritten is read."""
    around, inside, body = loop.parent_op(), ops_within(loop)[1:], loop.body.block
    if not isinstance(around, scf.ForOp) or not _ends_in_part(loop, vector_bits) or len(loop.iter_args) != 1:
        return None
    if not any(type(op) in FUNCTIONS for op in inside):
        return None
    inserts = [op for op in inside if type(op) in (tensor.InsertOp, scf.ForOp)]
    insert = inserts[0] if len(inserts) == 1 else None
    if not isinstance(insert, tensor.InsertOp) or insert.parent is not body or insert.dest is not body.args[1]:
        return None
    if not isinstance(insert.scalar.type, Float32Type) or not all(_is_place(v, body) for v in insert.indices):
        return None
    reads = any(type(op) is tensor.ExtractOp and op.tensor in overwritten for op in ops_within(around))
    return insert if reads else None


def _ends_in_part(loop: scf.ForOp, vector_bits: int) -> bool:
    """Whether LLVM makes vectors of a short loop of which the last one is a part, or, without masks, several are."""
    lower, rounds, step = (constant_value(v) for v in (loop.lb, loop.ub, loop.step))
    if lower != 0 or step != 1 or rounds is None or not FEWEST < rounds < MOST:
        return False
    return (rounds % WHOLE).bit_count() > (1 if vector_bits else 0)


def _is_place(value: SSAValue, body: Block) -> bool:
    """Whether an index is computed from the loop's variable and what does not change in it."""
    made = value.owner
    if not isinstance(made, Operation) or made.parent is not body:
        return True
    return isinstance(made, ApplyIndexingOp) and all(_is_place(v, body) for v in made.operands)


def _stage(loop: scf.ForOp, insert: tensor.InsertOp, constants: Constants) -> None:
    body, block = loop.body.block, loop.parent
    assert block is not None
    builder = Builder(block, constants, before=loop)
    rounds = constant_value(loop.ub)
    assert rounds is not None
    tile = builder.op(tensor.EmptyOp, type=TensorType(insert.scalar.type, [rounds]))
    first = Block(arg_types=[INDEX, tile.type])
    copies: dict[SSAValue, SSAValue] = {body.args[0]: first.args[0]}
    for op in ops_of(body)[:-1]:
        if op is not insert:
            first.add_op(op.clone(copies))
    _insert(first, copies[insert.scalar] if insert.scalar in copies else insert.scalar, [first.args[0]])
    staged = builder.add(_for(loop, tile, first, dict(loop.attributes))).results[0]
    second = Block(arg_types=[INDEX, insert.dest.type])
    places: dict[SSAValue, SSAValue] = {body.args[0]: second.args[0]}
    needed = _places(insert, body)
    for op in ops_of(body):
        if op in needed:
            second.add_op(op.clone(places))
    value = tensor.ExtractOp.create(operands=[staged, second.args[0]], result_types=[insert.scalar.type])
    second.add_op(value)
    _insert(second, value.results[0], [places.get(v, v) for v in insert.indices])
    replace(loop, [builder.add(_for(loop, loop.iter_args[0], second, {})).results[0]])


def _places(insert: tensor.InsertOp, body: Block) -> set[Operation]:
    """The ops of the body that compute the write's place."""
    found, left = set[Operation](), list(insert.indices)
    while left:
        made = left.pop().owner
        if isinstance(made, Operation) and made.parent is body and made not in found:
            found.add(made)
            left += made.operands
    return found


def _insert(block: Block, value: SSAValue, place: list[SSAValue]) -> None:
    op = tensor.InsertOp.create(operands=[value, block.args[1], *place], result_types=[block.args[1].type])
    block.add_ops([op, scf.YieldOp(op.results[0])])


def _for(loop: scf.ForOp, carried: SSAValue, body: Block, attributes: dict) -> scf.ForOp:
    operands = [loop.lb, loop.ub, loop.step, carried]
    return scf.ForOp.create(
        operands=operands, result_types=[carried.type], attributes=attributes, regions=[Region(body)]
    )
