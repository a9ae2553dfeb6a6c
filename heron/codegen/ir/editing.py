"""Reading and editing MLIR functions: their blocks and calls, and ops that are replaced or erased."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from heron.analysis.indexing import IndexingMap
from heron.codegen.ir import origins
from heron.codegen.ir.dialects.indexing_map_attr import IndexingMapAttr
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp
from heron.codegen.ir.types import INDEX


def constant_value(value: SSAValue) -> int | None:
    """The integer `value` is known to be at compile time."""
    op = value.owner
    if type(op) is arith.ConstantOp:
        attr = op.properties["value"]
        if type(attr) is IntegerAttr:
            return attr.value.data
    return None


def functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    """The functions of the module that have a body."""
    for op in ops_of(module.body.block):
        if isinstance(op, func.FuncOp) and op.body.blocks:
            yield op


def entry_of(module: ModuleOp, name: str) -> func.FuncOp:
    """The function of that name, which has a body: a kernel's entry has the kernel's name."""
    return next(op for op in functions(module) if op.sym_name.data == name)


def argument_attributes(function: func.FuncOp) -> list[dict[str, Attribute]]:
    """The attributes of each argument of a function, as copies; `set_argument_attributes` writes them back."""
    if function.arg_attrs is None:
        return [{} for _ in function.function_type.inputs]
    return [dict(a.data) for a in function.arg_attrs]


def set_argument_attributes(function: func.FuncOp, attributes: Sequence[dict[str, Attribute]]) -> None:
    """Gives each argument of a function its attributes, in place of those it has."""
    function.properties["arg_attrs"] = ArrayAttr([DictionaryAttr(a) for a in attributes])


def overwritten_inputs(function: func.FuncOp) -> set[SSAValue]:
    """The inputs whose memory an output has."""
    arguments = function.body.block.args
    aliases = [a.get("xla_gpu.alias") for a in argument_attributes(function)]
    return {arguments[alias.value.data] for alias in aliases if isinstance(alias, IntegerAttr)}


def function_table(module: ModuleOp) -> dict[str, func.FuncOp]:
    """Function by name, declarations included."""
    return {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}


def declare(
    module: ModuleOp,
    table: dict[str, func.FuncOp],
    name: str,
    inputs: Sequence[Attribute],
    outputs: Sequence[Attribute],
) -> SymbolRefAttr:
    """A reference to the external function `name`, declared in the module when it is not yet."""
    if name not in table:
        op = func.FuncOp(name, (inputs, outputs), Region(), StringAttr("private"))
        module.body.block.add_op(op)
        table[name] = op
    return SymbolRefAttr(name)


def call(callee: SymbolRefAttr, arguments: Sequence[SSAValue], results: Sequence[Attribute]) -> func.CallOp:
    """`func.call @callee(arguments)`."""
    return func.CallOp.create(operands=arguments, result_types=results, properties={"callee": callee})


def apply_indexing(m: IndexingMap, operands: Sequence[SSAValue]) -> ApplyIndexingOp:
    """`xla_gpu.apply_indexing`."""
    properties = {"map": IndexingMapAttr(m)}
    return ApplyIndexingOp.create(operands=operands, result_types=[INDEX] * len(m.results), properties=properties)


def retype(value: SSAValue, type_: Attribute) -> None:
    """Change a value's type in place, its uses kept."""
    value._type = type_  # pyright: ignore[reportPrivateUsage]


def erase(op: Operation) -> None:
    """Detaches and drops an op whose results have no uses left."""
    op.detach()
    op.erase(safe_erase=False)


def replace(op: Operation, values: Sequence[SSAValue]) -> None:
    """All uses of the op's results become `values`; the op goes."""
    if origins.noted is not None:
        origins.noted.replaced(op, values)
    for old, new in zip(op.results, values, strict=True):
        old.replace_all_uses_with(new)
    erase(op)


def ops_of(block: Block) -> list[Operation]:
    """The block's ops, which may then move and go. (xDSL's iterator takes three times as long.)"""
    found: list[Operation] = []
    op = block.first_op
    while op is not None:
        found.append(op)
        op = op._next_op
    return found


def ops_within(op: Operation) -> list[Operation]:
    """The op and all ops nested in it, each ahead of those in it. (xDSL's `walk` is a generator a level.)"""
    found: list[Operation] = []
    left = [op]
    while left:
        op = left.pop()
        found.append(op)
        if op.regions:
            left.extend(reversed([i for region in op.regions for block in region.blocks for i in ops_of(block)]))
    return found


def walk_blocks(block: Block) -> Iterator[Block]:
    """The block and every block nested in its ops, outer first."""
    left = [block]
    while left:
        block = left.pop()
        yield block
        left.extend(reversed([b for op in ops_of(block) if op.regions for r in op.regions for b in r.blocks]))


def scf_if(condition: SSAValue, types: Sequence[Attribute], then: Block, otherwise: Block | None = None) -> scf.IfOp:
    """`scf.if` with the given blocks (already ended by `scf.yield`)."""
    regions = [Region(then), Region(otherwise) if otherwise is not None else Region()]
    return scf.IfOp.create(operands=(condition,), result_types=types, regions=regions)


def yield_(values: Sequence[SSAValue] = ()) -> scf.YieldOp:
    """`scf.yield values`."""
    return scf.YieldOp.create(operands=values)


def scf_for(lb: SSAValue, ub: SSAValue, step: SSAValue, inits: Sequence[SSAValue], body: Block) -> scf.ForOp:
    """`scf.for` whose body block has the induction variable and carried values as arguments."""
    return scf.ForOp.create(
        operands=(lb, ub, step, *inits), result_types=[v.type for v in inits], regions=[Region(body)]
    )
