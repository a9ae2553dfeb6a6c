"""The `xla_gpu` dialect: the few ops a kernel needs beyond arith, math, scf, tensor, func and gpu.

A kernel is written in terms of tensors and indexing maps; `heron/codegen/transforms` lowers these ops away. The last
two, `xla_gpu.llvm_atomicrmw` and `xla_gpu.llvm_cmpxchg`, exist because xDSL's `llvm` dialect has no atomics: they are
LLVM's instructions one to one and reach the LLVM translation.

The dialect of XLA:GPU, whose names these are, has a few ops more. Here an index is an expression while a function is
emitted, so that nothing has to be re-indexed afterwards (`reindex`); an access under a condition stands in `scf.if`
(`predicated_extract`, `predicated_insert`); values between loops are tensors or vectors the loops carry (`materialize`,
`insert`); dynamic sizes are scalars beside their arrays (`get_dynamic_dim_size`).

| op | meaning |
|---|---|
| `apply_indexing "map"(dims…)[syms…]` | the map's results at a point, as `index` values |
| `loop (dims…)[syms] -> (results) in "map" iter_args(…)` | runs its body for each point of the domain, s0 outermost |
| `yield` | ends a `loop` or `atomic_rmw` body |
| `pure_call @f(args)` | a call without side effects (may be shared, dropped, inlined) |
| `allocate_shared : tensor<…>` | a tensor in the block's shared memory |
| `sync_threads (%t…)` | a block barrier; its results are the tensors as they are after it |
| `shuffle_reduce @f(values) to N` | combines over lanes at distances N, N/2, …, 1; lane 0 has the whole |
| `shuffle_up (values) by N` | the values of the lane N below |
| `transpose_block %s[idx…], %t[idx…]` | writes a square block of `%s` into `%t`, turned |
| `atomic_rmw %t[idx…]` | replaces one element by its body's result, atomically |
| `llvm_atomicrmw`, `llvm_cmpxchg` | the LLVM instructions |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    SymbolRefAttr,
    TensorType,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from heron.analysis.indexing import IndexingMap, format_map
from heron.codegen.dialects.indexing_map_attr import IndexingMapAttr, parse_quoted_map
from heron.codegen.dialects.llvm_atomics import LLVMAtomicRMWOp, LLVMCmpXchgOp

INDEX = IndexType()


def _print_values(printer: Printer, values: Sequence[SSAValue], brackets: str) -> None:
    printer.print_string(brackets[0])
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(brackets[1])


def _parse_values(parser: Parser, delimiter: Any, type_: Attribute) -> list[SSAValue]:
    unresolved = parser.parse_comma_separated_list(delimiter, parser.parse_unresolved_operand)
    return [parser.resolve_operand(v, type_) for v in unresolved]


def _verify_callee(op: Operation, callee: SymbolRefAttr, inputs: list[Attribute], outputs: list[Attribute]) -> None:
    """Whether the function exists in the op's module, takes `inputs` and returns `outputs`."""
    top: Operation = op
    while (parent := top.parent_op()) is not None:
        top = parent
    if not isinstance(top, ModuleOp):
        return  # a function by itself, while it is built
    name = callee.root_reference.data
    found = _function(top, name)
    if found is None:
        raise VerifyException(f"there is no function @{name}")
    if [*found.function_type.inputs] != inputs or [*found.function_type.outputs] != outputs:
        wanted = FunctionType.from_lists(inputs, outputs)
        raise VerifyException(f"@{name} is {found.function_type}, it is called as {wanted}")


#: the functions of modules by name, as they were when one was last looked for in vain
_SYMBOLS: WeakKeyDictionary[ModuleOp, WeakValueDictionary[str, FuncOp]] = WeakKeyDictionary()


def _function(module: ModuleOp, name: str) -> FuncOp | None:
    """The module's function of that name. What the table says is looked at before it is believed."""
    found = _SYMBOLS[module].get(name) if module in _SYMBOLS else None
    if found is None or found.parent is not module.body.block or found.sym_name.data != name:
        functions = (op for op in module.ops if isinstance(op, FuncOp))
        table = _SYMBOLS[module] = WeakValueDictionary({f.sym_name.data: f for f in functions})
        found = table.get(name)
    return found


@irdl_op_definition
class ApplyIndexingOp(IRDLOperation):
    """The results of `map` at the point given by the operands: its dims, then syms, then runtime variables."""

    name = "xla_gpu.apply_indexing"
    arguments = var_operand_def(IndexType)
    map_attr = prop_def(IndexingMapAttr, prop_name="map")
    res = var_result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, map_: IndexingMap, arguments: Sequence[SSAValue]) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=[INDEX] * len(map_.results),
            properties={"map": IndexingMapAttr(map_)},
        )

    @property
    def map(self) -> IndexingMap:
        return self.properties["map"].data  # pyright: ignore[reportAttributeAccessIssue]

    def verify_(self) -> None:
        m = self.map
        wanted = len(m.dims) + len(m.syms) + len(m.rt_vars)
        if len(self.operands) != wanted:
            raise VerifyException(f"the map has {wanted} variables, the op {len(self.operands)} operands")
        if len(self.results) != len(m.results):
            raise VerifyException(f"the map has {len(m.results)} results, the op {len(self.results)}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_string_literal(format_map(self.map))
        n = len(self.map.dims)
        _print_values(printer, self.operands[:n], "()")
        if len(self.operands) > n:
            _print_values(printer, self.operands[n:], "[]")

    @classmethod
    def parse(cls, parser: Parser) -> ApplyIndexingOp:
        m = parse_quoted_map(parser)
        values = _parse_values(parser, Parser.Delimiter.PAREN, INDEX)
        if len(m.syms) + len(m.rt_vars):
            values += _parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        return cls(m, values)


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a `loop` (next iteration's values) or of an `atomic_rmw` (the new element)."""

    name = "xla_gpu.yield"
    arguments = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict ($arguments^ `:` type($arguments))?"

    def __init__(self, values: Sequence[SSAValue] = ()) -> None:
        Operation.__init__(self, operands=values)


@irdl_op_definition
class LoopOp(IRDLOperation):
    """Runs its body for every point of the symbols' domain.

    The body's arguments are the symbols, the map's results, and the carried values; `yield` gives the next values.
    Points that break a constraint of the map are skipped. Runtime variables are not allowed.
    """

    name = "xla_gpu.loop"
    arguments = var_operand_def()  # the map's dims, then the initial values
    map_attr = prop_def(IndexingMapAttr, prop_name="map")
    res = var_result_def()
    body = region_def("single_block")

    def __init__(
        self, map_: IndexingMap, dims: Sequence[SSAValue], inits: Sequence[SSAValue], body: Region | Block
    ) -> None:
        Operation.__init__(
            self,
            operands=[*dims, *inits],
            result_types=[v.type for v in inits],
            properties={"map": IndexingMapAttr(map_)},
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @staticmethod
    def build(
        map_: IndexingMap,
        dims: Sequence[SSAValue],
        inits: Sequence[SSAValue],
        body: Callable[[Block, Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> LoopOp:
        """The loop whose body is filled by `body(block, symbols, map results, carried) -> next carried values`."""
        block = Block(arg_types=[INDEX] * (len(map_.syms) + len(map_.results)) + [v.type for v in inits])
        n, m = len(map_.syms), len(map_.syms) + len(map_.results)
        block.add_op(YieldOp(body(block, block.args[:n], block.args[n:m], block.args[m:])))
        return LoopOp(map_, dims, inits, block)

    @property
    def map(self) -> IndexingMap:
        return self.properties["map"].data  # pyright: ignore[reportAttributeAccessIssue]

    @property
    def dims(self) -> Sequence[SSAValue]:
        return self.operands[: len(self.map.dims)]

    @property
    def inits(self) -> Sequence[SSAValue]:
        return self.operands[len(self.map.dims) :]

    def verify_(self) -> None:
        m = self.map
        if m.rt_vars:
            raise VerifyException("a loop's map has no runtime variables")
        types = [v.type for v in self.inits]
        if any(v.type != INDEX for v in self.dims):
            raise VerifyException("a loop's dimensions are of type index")
        if len(self.operands) < len(m.dims) or [r.type for r in self.results] != types:
            raise VerifyException("a loop's results have the types of its initial values")
        wanted = [INDEX] * (len(m.syms) + len(m.results)) + types
        if [a.type for a in self.body.block.args] != wanted:
            raise VerifyException("a loop body takes the symbols, the map's results and the carried values")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp) or [v.type for v in last.operands] != types:
            raise VerifyException("a loop body yields the next carried values")

    def print(self, printer: Printer) -> None:
        m, args = self.map, self.body.block.args
        n, k = len(m.syms), len(m.syms) + len(m.results)
        printer.print_string(" ")
        _print_values(printer, self.dims, "()")
        _print_values(printer, args[:n], "[]")
        printer.print_string(" -> ")
        _print_values(printer, args[n:k], "()")
        printer.print_string(" in ")
        printer.print_string_literal(format_map(m))
        if self.inits:
            printer.print_string(" iter_args(")
            printer.print_list(zip(args[k:], self.inits, strict=True), lambda p: _print_assignment(printer, p))
            printer.print_string(") -> (")
            printer.print_list([v.type for v in self.inits], printer.print_attribute)
            printer.print_string(")")
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False)

    @classmethod
    def parse(cls, parser: Parser) -> LoopOp:
        dims = _parse_values(parser, Parser.Delimiter.PAREN, INDEX)

        def index_argument() -> Parser.Argument:
            return parser.parse_argument(expect_type=False).resolve(INDEX)

        args = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, index_argument)
        parser.parse_punctuation("->")
        args += parser.parse_comma_separated_list(Parser.Delimiter.PAREN, index_argument)
        parser.parse_keyword("in")
        m = parse_quoted_map(parser)
        inits: list[SSAValue] = []
        if parser.parse_optional_keyword("iter_args"):
            pairs = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, lambda: _parse_assignment(parser))
            parser.parse_punctuation("->")
            types = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
            inits = [parser.resolve_operand(v, t) for (_, v), t in zip(pairs, types, strict=True)]
            args += [a.resolve(t) for (a, _), t in zip(pairs, types, strict=True)]
        return cls(m, dims, inits, parser.parse_region(args))


def _print_assignment(printer: Printer, pair: tuple[SSAValue, SSAValue]) -> None:
    printer.print_ssa_value(pair[0])
    printer.print_string(" = ")
    printer.print_ssa_value(pair[1])


def _parse_assignment(parser: Parser) -> tuple[Any, Any]:
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


@irdl_op_definition
class PureCallOp(IRDLOperation):
    """Calls a private function that has no side effects."""

    name = "xla_gpu.pure_call"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    res = var_result_def()
    traits = traits_def(Pure())
    assembly_format = "$callee `(` $arguments `)` attr-dict `:` functional-type($arguments, $res)"

    def __init__(self, callee: str, arguments: Sequence[SSAValue], result_types: Sequence[Attribute]) -> None:
        Operation.__init__(
            self, operands=arguments, result_types=result_types, properties={"callee": SymbolRefAttr(callee)}
        )

    def verify_(self) -> None:
        _verify_callee(self, self.callee, [v.type for v in self.operands], [r.type for r in self.results])


@irdl_op_definition
class AllocateSharedOp(IRDLOperation):
    """An uninitialised tensor in the block's shared memory."""

    name = "xla_gpu.allocate_shared"
    result = result_def(TensorType)
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type_: Attribute) -> None:
        Operation.__init__(self, result_types=[type_])

    def verify_(self) -> None:
        type_ = self.result.type
        if isinstance(type_, TensorType) and any(n < 0 for n in type_.get_shape()):
            raise VerifyException("shared memory is of a known size")


@irdl_op_definition
class SyncThreadsOp(IRDLOperation):
    """A barrier for the block: writes to the operands before it are seen by reads of the results."""

    name = "xla_gpu.sync_threads"
    arguments = var_operand_def(TensorType)
    res = var_result_def(TensorType)

    def __init__(self, tensors: Sequence[SSAValue] = ()) -> None:
        Operation.__init__(self, operands=tensors, result_types=[t.type for t in tensors])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_values(printer, self.operands, "()")
        if self.operands:
            printer.print_string(" : ")
            printer.print_list([v.type for v in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> SyncThreadsOp:
        values = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        if not values:
            return cls()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(parser.resolve_operands(values, types, parser.pos))

    def verify_(self) -> None:
        if [v.type for v in self.operands] != [r.type for r in self.results]:
            raise VerifyException("sync_threads returns its operands")


@irdl_op_definition
class ShuffleReduceOp(IRDLOperation):
    """Reduces `arguments` over lanes: at distances `max_distance`, …, 2, 1 each lane combines with the lane above it.

    Args:
        combiner: private function `(acc…, x…) -> acc…`.
        max_distance: a power of two up to 16; with 16 lane 0 ends with the warp's total.
    """

    name = "xla_gpu.shuffle_reduce"
    combiner = prop_def(SymbolRefAttr)
    max_distance = prop_def(IntegerAttr[IntegerType])
    arguments = var_operand_def()
    res = var_result_def()

    def __init__(self, combiner: str, arguments: Sequence[SSAValue], max_distance: int) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=[v.type for v in arguments],
            properties={"combiner": SymbolRefAttr(combiner), "max_distance": IntegerAttr(max_distance, i64)},
        )

    def verify_(self) -> None:
        distance = self.max_distance.value.data
        if distance not in (1, 2, 4, 8, 16):
            raise VerifyException(f"shuffle distance {distance} is not a power of two up to 16")
        if [v.type for v in self.operands] != [r.type for r in self.results]:
            raise VerifyException("shuffle_reduce returns values of its operands' types")
        types = [v.type for v in self.operands]
        _verify_callee(self, self.combiner, types * 2, types)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.combiner)
        _print_values(printer, self.operands, "()")
        printer.print_string(f" to {self.max_distance.value.data} : ")
        printer.print_list([v.type for v in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleReduceOp:
        combiner = parser.parse_symbol_name()
        values = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("to")
        distance = parser.parse_integer()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        resolved = parser.resolve_operands(values, types, parser.pos)
        return cls(combiner.data, resolved, distance)


@irdl_op_definition
class ShuffleUpOp(IRDLOperation):
    """Each lane gets the values of the lane `distance` below it; the first `distance` lanes keep their own."""

    name = "xla_gpu.shuffle_up"
    distance = prop_def(IntegerAttr[IntegerType])
    arguments = var_operand_def()
    res = var_result_def()

    def __init__(self, arguments: Sequence[SSAValue], distance: int) -> None:
        Operation.__init__(
            self,
            operands=arguments,
            result_types=[v.type for v in arguments],
            properties={"distance": IntegerAttr(distance, i64)},
        )

    def verify_(self) -> None:
        if not 1 <= self.distance.value.data <= 31:
            raise VerifyException(f"no lane of a warp is {self.distance.value.data} below another")
        if [v.type for v in self.operands] != [r.type for r in self.results]:
            raise VerifyException("shuffle_up returns values of its operands' types")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        _print_values(printer, self.operands, "()")
        printer.print_string(f" by {self.distance.value.data} : ")
        printer.print_list([v.type for v in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> ShuffleUpOp:
        values = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_keyword("by")
        distance = parser.parse_integer()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        return cls(parser.resolve_operands(values, types, parser.pos), distance)


@irdl_op_definition
class AtomicRMWOp(IRDLOperation):
    """Atomically replaces `tensor[indices]` by what the body makes of its current value (the body's argument)."""

    name = "xla_gpu.atomic_rmw"
    tensor = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    result = result_def(TensorType)
    body = region_def("single_block")

    def __init__(self, tensor: SSAValue, indices: Sequence[SSAValue], body: Region | Block) -> None:
        Operation.__init__(
            self,
            operands=[tensor, *indices],
            result_types=[tensor.type],
            regions=[body if isinstance(body, Region) else Region(body)],
        )

    @staticmethod
    def build(
        tensor: SSAValue, indices: Sequence[SSAValue], body: Callable[[Block, SSAValue], SSAValue]
    ) -> AtomicRMWOp:
        """The op whose body is filled by `body(block, current) -> new`."""
        assert isinstance(tensor.type, TensorType)
        block = Block(arg_types=[tensor.type.element_type])
        block.add_op(YieldOp([body(block, block.args[0])]))
        return AtomicRMWOp(tensor, indices, block)

    def verify_(self) -> None:
        type_ = self.tensor.type
        assert isinstance(type_, TensorType)
        element = type_.element_type
        if len(self.indices) != type_.get_num_dims() or self.result.type != type_:
            raise VerifyException("atomic_rmw wants an index for each dimension of the tensor it returns")
        last = self.body.block.last_op
        if [a.type for a in self.body.block.args] != [element]:
            raise VerifyException("the body of atomic_rmw takes the current element")
        if not isinstance(last, YieldOp) or [v.type for v in last.operands] != [element]:
            raise VerifyException("the body of atomic_rmw yields the new element")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.tensor)
        _print_values(printer, self.operands[1:], "[]")
        printer.print_string(" : ")
        printer.print_attribute(self.tensor.type)
        printer.print_string(" ")
        printer.print_region(self.body)

    @classmethod
    def parse(cls, parser: Parser) -> AtomicRMWOp:
        tensor = parser.parse_unresolved_operand()
        indices = _parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        parser.parse_punctuation(":")
        type_ = parser.parse_type()
        return cls(parser.resolve_operand(tensor, type_), indices, parser.parse_region())


@irdl_op_definition
class TransposeBlockOp(IRDLOperation):
    """Writes the `size` x `size` block of `source` at its indices, turned, to `target` at its; CPU kernels only.

    Rows of the block lie `source_step` elements apart in the source and `target_step` in the target, the elements of a
    row side by side: `target[j + r * target_step + c] = source[i + c * source_step + r]` by linear index.
    """

    name = "xla_gpu.transpose_block"
    source = operand_def(TensorType)
    target = operand_def(TensorType)
    indices = var_operand_def(IndexType)
    size = prop_def(IntegerAttr)
    source_step = prop_def(IntegerAttr)
    target_step = prop_def(IntegerAttr)
    result = result_def(TensorType)

    def __init__(
        self,
        source: SSAValue,
        source_indices: Sequence[SSAValue],
        target: SSAValue,
        target_indices: Sequence[SSAValue],
        size: int,
        source_step: int,
        target_step: int,
    ) -> None:
        numbers = {"size": size, "source_step": source_step, "target_step": target_step}
        Operation.__init__(
            self,
            operands=[source, target, *source_indices, *target_indices],
            result_types=[target.type],
            properties={key: IntegerAttr(value, i64) for key, value in numbers.items()},
        )

    @property
    def source_indices(self) -> Sequence[SSAValue]:
        return self.operands[2 : 2 + self._rank(0)]

    @property
    def target_indices(self) -> Sequence[SSAValue]:
        return self.operands[2 + self._rank(0) :]

    def _rank(self, operand: int) -> int:
        type_ = self.operands[operand].type
        assert isinstance(type_, TensorType)
        return len(type_.get_shape())

    def verify_(self) -> None:
        size = self.size.value.data
        if size < 2 or size & (size - 1):
            raise VerifyException(f"a block of {size} x {size} cannot be turned by halving")
        if len(self.indices) != self._rank(0) + self._rank(1):
            raise VerifyException("transpose_block wants an index for each dimension of source and target")
        types = [v.type.element_type for v in self.operands[:2] if isinstance(v.type, TensorType)]
        if types[0] != types[1]:
            raise VerifyException("source and target of transpose_block have one element type")
        if self.result.type != self.target.type:
            raise VerifyException("transpose_block returns its target")

    def print(self, printer: Printer) -> None:
        pairs = ((self.source, self.source_indices), (self.target, self.target_indices))
        for separator, (tensor, indices) in zip((" ", ", "), pairs, strict=True):
            printer.print_string(separator)
            printer.print_ssa_value(tensor)
            _print_values(printer, indices, "[]")
        numbers = (self.size, self.source_step, self.target_step)
        size, source, target = (n.value.data for n in numbers)
        printer.print_string(f" size {size} steps ({source}, {target}) : ")
        printer.print_list([self.source.type, self.target.type], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> TransposeBlockOp:
        source = parser.parse_unresolved_operand()
        source_indices = _parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        parser.parse_punctuation(",")
        target = parser.parse_unresolved_operand()
        target_indices = _parse_values(parser, Parser.Delimiter.SQUARE, INDEX)
        parser.parse_keyword("size")
        size = parser.parse_integer()
        parser.parse_keyword("steps")
        steps = parser.parse_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_integer)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
        tensors = parser.resolve_operands([source, target], types, parser.pos)
        return cls(tensors[0], source_indices, tensors[1], target_indices, size, *steps)


XlaGpu = Dialect(
    "xla_gpu",
    [
        ApplyIndexingOp,
        LoopOp,
        YieldOp,
        PureCallOp,
        AllocateSharedOp,
        SyncThreadsOp,
        ShuffleReduceOp,
        ShuffleUpOp,
        TransposeBlockOp,
        AtomicRMWOp,
        LLVMAtomicRMWOp,
        LLVMCmpXchgOp,
    ],
    [IndexingMapAttr],
)
