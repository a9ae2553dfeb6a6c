"""The state of emission: `KernelEmitter` for a kernel's functions, `FunctionEmitter` for one body.

Indices are expressions over the function's variables (see `indices`), not SSA values: moving elements costs no op, and
only where a tensor is read is the index made. Values are remembered by (instruction, index) for as long as the region
they stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import cast

from xdsl.dialects import complex as mlir_complex
from xdsl.dialects import func, scf, tensor
from xdsl.dialects.builtin import ComplexType, FunctionType, ModuleOp, StringAttr, SymbolRefAttr, TensorType
from xdsl.ir import Attribute, Block, Region, SSAValue

from heron.analysis.fusion.partition import Function, Partition
from heron.analysis.indexing.expr import Const, Dim, Expr
from heron.analysis.indexing.hlo_maps import Index, moves_elements, operand_index, to_memory
from heron.analysis.indexing.map import Constraint, IndexingMap
from heron.analysis.indexing.simplify import simplifier
from heron.codegen.elemental import registry
from heron.codegen.elemental.indices import Indices
from heron.codegen.elemental.values import Pair, Value, scalar_of, tuple_of
from heron.codegen.ir import origins
from heron.codegen.ir.dialects.xla_gpu import IndexingMapAttr, LoopOp, PureCallOp, YieldOp
from heron.codegen.ir.types import INDEX, scalar_type, tensor_type
from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape


class KernelEmitter:
    """The functions of one kernel's module: what ``partition`` made functions, each emitted when first called."""

    def __init__(self, name: str, partition: Partition) -> None:
        self.name = name
        self.partition = partition
        self.functions = partition.functions
        self.body = Block()
        self.module = ModuleOp([])
        self.module.body.detach_block(0)
        self.module.body.add_block(self.body)
        self.rules = registry.load()
        #: straight code for small windows and selects for padding: what lets LLVM vectorise the loop around them
        self.straight = False
        #: extrema of floats are picked by comparisons (`float_pick`)
        self.picks = False
        self.promoted: dict[Computation, Computation] = {}  # reducers, with small floats as f32
        self._symbols: dict[Instruction, str] = {}

    def symbol(self, f: Function) -> str:
        """The private function of `f`, emitted now if it was not before."""
        found = self._symbols.get(f.root)
        if found is None:
            found = self._symbols[f.root] = f"{self.name}_{f.name}"
            self._emit(f, found)
        return found

    def _emit(self, f: Function, symbol: str) -> None:
        tensors = [tensor_type(p.shape) for p in f.parameters]
        arguments: list[Attribute] = [*tensors, *[INDEX] * len(f.dims)]
        block = Block(arg_types=arguments)
        e = FunctionEmitter(self, block, dict(zip(f.parameters, block.args, strict=False)), f.root)
        index = tuple(
            e.variable(arg, 0, size - 1) for arg, size in zip(block.args[len(tensors) :], f.dims, strict=True)
        )
        results = e.pack(e.value(f.root, index), f.root.shape)
        e.b.terminate(func.ReturnOp, results)
        e.b.constants.drop_unused()
        self.add_function(symbol, block, [r.type for r in results], private=True)

    def add_function(
        self, symbol: str, block: Block, results: Sequence[Attribute], private: bool = False
    ) -> func.FuncOp:
        """Append a function with that body to the module."""
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(symbol),
            "function_type": FunctionType.from_lists([a.type for a in block.args], results),
        }
        if private:
            properties["sym_visibility"] = StringAttr("private")
        function = func.FuncOp.create(properties=properties, regions=[Region(block)])
        self.body.add_op(function)
        return function


class FunctionEmitter(Indices):
    """Emission into one function body.

    Args:
        kernel: what the body belongs to.
        block: its entry block.
        tensors: the tensor each fusion parameter is.
        root: the instruction the function is for, when it is a function of the partition.
    """

    def __init__(
        self,
        kernel: KernelEmitter,
        block: Block,
        tensors: dict[Instruction, SSAValue],
        root: Instruction | None = None,
    ) -> None:
        super().__init__(block)
        self.kernel, self.tensors, self.root = kernel, tensors, root
        self._functions = kernel.functions
        self._rules = kernel.rules

    # -- values --------------------------------------------------------------------------------------------------------
    def provide(self, i: Instruction, index: Index, value: Value) -> None:
        """Say what `i` is at `index`: a hero's result, for its epilogue."""
        self._memo[-1][i, index] = value

    def value(self, i: Instruction, index: Index) -> Value:
        """The value of `i` at `index`, emitted unless it is there already."""
        found = self._find((i, index))
        if found is not None:
            return found
        if not i.op.is_elementwise:
            return self._compute(i, index)
        # chains of elementwise ops can be long: no recursion along them
        stack = [i]
        while stack:
            top = stack[-1]
            if self._find((top, index)) is not None:
                stack.pop()
                continue
            waiting = [] if self._is_call(top) else [o for o in top.operands if self._waits(o, top, index)]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            stack.pop()
            self._compute(top, index)
        return self._find((i, index))

    def _waits(self, operand: Instruction, user: Instruction, index: Index) -> bool:
        same = operand.op.is_elementwise and operand.shape.dims == user.shape.dims
        return same and self._find((operand, index)) is None

    def _is_call(self, i: Instruction) -> bool:
        return i is not self.root and i in self._functions

    def _compute(self, i: Instruction, index: Index) -> Value:
        notes = origins.noted
        if notes is None:
            return self._computed(i, index)
        with notes.within(i.name):
            return self._computed(i, index)

    def _computed(self, i: Instruction, index: Index) -> Value:
        if self._is_call(i):
            value = self._call(self._functions[i], index)
        elif i.opcode == "parameter":
            value = self.load(i, index)
        elif moves_elements(i) and not i.op.is_elementwise:
            value = self.value(i.operands[0], self.simplify(operand_index(i, 0, index)))
        else:
            rule = self._rules.get(i.opcode)
            if rule is None:
                registry.require(i)
                raise HeronError("GEN001", f"no kernel can compute {i.opcode} here", where=str(i))
            value = rule(self, i, index)
        self._memo[-1][i, index] = value
        return value

    def operand(self, i: Instruction, n: int, index: Index) -> Value:
        """Operand `n` of an elementwise `i` at `index` (a scalar operand of an array op at `()`)."""
        operand = i.operands[n]
        return self.value(operand, index if operand.shape.dims == i.shape.dims else ())

    def operands(self, i: Instruction, index: Index) -> list[Value]:
        """All operands of an elementwise `i` at `index`."""
        return [self.operand(i, n, index) for n in range(len(i.operands))]

    def scalar(self, i: Instruction, index: Index) -> SSAValue:
        """The value of an `i` that is neither complex nor a tuple."""
        return scalar_of(self.value(i, index))

    def scalars(self, i: Instruction, index: Index) -> list[SSAValue]:
        """All operands of an elementwise `i` at `index`, none of them complex."""
        return [scalar_of(v) for v in self.operands(i, index)]

    def load(self, i: Instruction, index: Index) -> Value:
        """The element of a fusion parameter at `index`."""
        source = self.tensors.get(i)
        if source is None:
            raise HeronError("GEN003", f"'{i.name}' has no value at this place of the kernel", where=str(i))
        return self.extract(source, to_memory(i.shape, index))

    def extract(self, source: SSAValue, index: Index) -> Value:
        """The element of a tensor at `index`, in memory order."""
        return self._split(self.b.op(tensor.ExtractOp, source, *self.index_values(index), type=_element(source)))

    def insert(self, value: Value, target: SSAValue, index: Index) -> SSAValue:
        """The tensor with `value` at `index`, in memory order."""
        scalar = self._join(value)
        return self.b.op(tensor.InsertOp, scalar, target, *self.index_values(index), type=target.type)

    def read(self, source: SSAValue, index: Index) -> SSAValue:
        """The scalar of a tensor at `index`, in memory order; a complex number is one scalar."""
        return self.b.op(tensor.ExtractOp, source, *self.index_values(self.simplify(index)), type=_element(source))

    def write(self, value: SSAValue, target: SSAValue, index: Index) -> SSAValue:
        """The tensor with the scalar `value` at `index`, in memory order."""
        return self.b.op(tensor.InsertOp, value, target, *self.index_values(self.simplify(index)), type=target.type)

    def _split(self, value: SSAValue) -> Value:
        type_ = value.type
        if not isinstance(type_, ComplexType):
            return value
        part = cast("ComplexType[Attribute]", type_).element_type  # pyright: ignore[reportInvalidTypeArguments]
        return Pair(self.b.op(mlir_complex.ReOp, value, type=part), self.b.op(mlir_complex.ImOp, value, type=part))

    def _join(self, value: Value) -> SSAValue:
        if not isinstance(value, Pair):
            return scalar_of(value)
        return self.b.op(mlir_complex.CreateOp, value.re, value.im, type=ComplexType(value.re.type))  # type: ignore

    def pack(self, value: Value, shape: Shape) -> list[SSAValue]:
        """A value as plain SSA scalars, one for each array in `shape`."""
        if shape.tuple_shapes is None:
            return [self._join(value)]
        return [v for part, s in zip(tuple_of(value), shape.tuple_shapes, strict=True) for v in self.pack(part, s)]

    def unpack(self, values: Iterator[SSAValue], shape: Shape) -> Value:
        """The inverse of `pack`."""
        if shape.tuple_shapes is None:
            return self._split(next(values))
        return tuple(self.unpack(values, s) for s in shape.tuple_shapes)

    def _call(self, f: Function, index: Index) -> Value:
        symbol = self.kernel.symbol(f)
        arguments = [self.tensors[p] for p in f.parameters] + self.index_values(index)
        results = [scalar_type(leaf.element_type) for _, leaf in f.root.shape.leaves()]
        op = PureCallOp.create(operands=arguments, result_types=results, properties={"callee": SymbolRefAttr(symbol)})
        self.b.add(op)
        return self.unpack(iter(op.results), f.root.shape)

    # -- regions -------------------------------------------------------------------------------------------------------
    def if_(
        self,
        condition: SSAValue,
        shape: Shape,
        yes: Callable[[], Value],
        no: Callable[[], Value],
    ) -> Value:
        """`scf.if` with a value of `shape`; each side is emitted by its function."""
        blocks: list[Block] = []
        for side in (yes, no):
            with self.region(Block()) as block:
                self.b.terminate(scf.YieldOp, self.pack(side(), shape))
            blocks.append(block)
        types = [scalar_type(leaf.element_type) for _, leaf in shape.leaves()]
        op = scf.IfOp.create(operands=[condition], result_types=types, regions=[Region(b) for b in blocks])
        self.b.add(op)
        return self.unpack(iter(op.results), shape)

    def loop(
        self,
        sizes: Sequence[int],
        inits: Sequence[SSAValue],
        body: Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]],
        constraints: Callable[[Index], Sequence[Constraint]] | None = None,
    ) -> list[SSAValue]:
        """An `xla_gpu.loop` over a box of these sizes, outermost first, carrying scalars or tensors.

        ``body(variables, carried) -> next carried``. Points that break ``constraints(variables)`` are skipped.
        """
        if constraints is None and all(size == 1 for size in sizes):
            return list(body((Const(0),) * len(sizes), inits))
        block = Block(arg_types=[*[INDEX] * len(sizes), *(v.type for v in inits)])
        first = len(self._variables)
        variables: list[Expr] = []
        for arg, size in zip(block.args[: len(sizes)], sizes, strict=True):
            self._variables.append(arg)
            self._ranges.append((0, size - 1))
            variables.append(Dim(len(self._variables) - 1))
        self._simplifier = simplifier(tuple(self._ranges))
        index = tuple(Const(0) if size == 1 else v for v, size in zip(variables, sizes, strict=True))
        wanted = [(self._simplifier.simplify(e), lo, hi) for e, lo, hi in (constraints(index) if constraints else ())]
        with self.region(block):
            self.b.terminate(YieldOp, body(index, block.args[len(sizes) :]))
        loop_variables = range(first, first + len(sizes))
        m, operands = self._close((), wanted, sizes, loop_variables)
        return self._add_loop(m, [*operands, *inits], block)

    def guarded(
        self, condition: SSAValue | None, values: Sequence[SSAValue], body: Callable[[], Sequence[SSAValue]]
    ) -> list[SSAValue]:
        """The result of `body` on `values` (scalars or tensors) where `condition` holds, else `values`."""
        if condition is None:
            return list(body())
        yes, no = Block(), Block()
        with self.region(yes):
            self.b.terminate(scf.YieldOp, body())
        with self.region(no):
            self.b.terminate(scf.YieldOp, values)
        types = [v.type for v in values]
        op = scf.IfOp.create(operands=[condition], result_types=types, regions=[Region(yes), Region(no)])
        return list(self.b.add(op).results)

    def box(
        self,
        sizes: Sequence[int],
        inits: Sequence[SSAValue],
        body: Callable[[Index, Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """The result of `loop`, unrolled; variables are constants."""
        values = list(inits)
        for point in product(*(range(size) for size in sizes)):
            values = list(body(tuple(Const(v) for v in point), values))
        return values

    def map_loop(
        self,
        m: IndexingMap,
        dims: Sequence[SSAValue],
        sizes: Sequence[int],
        inits: Sequence[SSAValue],
        body: Callable[[Index, Sequence[SSAValue], Sequence[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """An `xla_gpu.loop` over the symbols of `m`, whose results index a tensor of `sizes`.

        ``dims``: the values of the map's dimension variables. ``body(index, carried, symbols) -> next carried``.
        """
        n = len(m.syms)
        block = Block(arg_types=[*[INDEX] * (n + len(sizes)), *(v.type for v in inits)])
        index = tuple(
            self.variable(arg, 0, size - 1) for arg, size in zip(block.args[n : n + len(sizes)], sizes, strict=True)
        )
        with self.region(block):
            self.b.terminate(YieldOp, body(index, block.args[n + len(sizes) :], block.args[:n]))
        return self._add_loop(m, [*dims, *inits], block)

    def _add_loop(self, m: IndexingMap, operands: Sequence[SSAValue], body: Block) -> list[SSAValue]:
        op = LoopOp.create(
            operands=operands,
            result_types=[v.type for v in operands[len(m.dims) :]],
            properties={"map": IndexingMapAttr(m)},
            regions=[Region(body)],
        )
        return list(self.b.add(op).results)


def _element(source: SSAValue) -> Attribute:
    """The MLIR type of a tensor's elements."""
    type_ = cast("TensorType[Attribute]", source.type)
    return type_.element_type
