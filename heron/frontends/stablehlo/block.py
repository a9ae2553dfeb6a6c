"""Block: one region or function on its way to a computation; and the table of rules from operations to HLO."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from heron.errors import HeronError, Span
from heron.frontends.stablehlo.carried import carry
from heron.frontends.stablehlo.constants import dense
from heron.frontends.stablehlo.quantization import Quantization, plain_shape, quantization
from heron.frontends.stablehlo.sizes import Folding, fits
from heron.frontends.stablehlo.syntax import Operation, Region, base, plain
from heron.hlo.ir import literal as literals
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction, make
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType

if TYPE_CHECKING:
    from heron.frontends.stablehlo.importer import Importer

#: the results of an operation
Results = Instruction | Sequence[Instruction]
Rule = Callable[["Block", Operation, list[Instruction]], Results]

RULES: dict[str, Rule] = {}

RETURNS = frozenset({"func.return", "stablehlo.return", "sdy.return", "mhlo.return"})


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule that turns the operations of these names into HLO."""

    def register(lower: Rule) -> Rule:
        for name in names:
            RULES[f"stablehlo.{name}" if "." not in name else name] = lower
        return lower

    return register


class Block:
    """Instructions that are added to a computation, and the instruction of each SSA name."""

    __slots__ = (
        "importer",
        "computation",
        "values",
        "parent",
        "folding",
        "quantized",
        "metadata",
        "hint",
        "_constants",
        "_spread",
    )

    def __init__(
        self,
        importer: Importer,
        computation: Computation,
        parent: Block | None = None,
        folding: Folding | None = None,
    ) -> None:
        self.importer, self.computation, self.parent = importer, computation, parent
        #: finds integers that are known early; None in functions where no size depends on one
        self.folding = folding
        self.values: dict[str, Instruction] = {}
        #: what the integers of quantized values stand for
        self.quantized: dict[str, Quantization] = {}
        self.metadata, self.hint = None, ""
        self._constants: dict[tuple[object, Shape], Instruction] = {}
        self._spread: dict[tuple[Instruction, Shape], Instruction] = {}

    # -- making instructions -----------------------------------------------------------------------------------------
    def add(
        self, opcode: str, operands: Sequence[Instruction] = (), shape: Shape | None = None, **attrs: Any
    ) -> Instruction:
        """A new instruction with the metadata of the operation being imported.

        Raises HLO010 (shape rule), SHLO011 (a stated shape leaves sizes open, and the rule does not find them).
        """
        i = make(opcode, operands, shape, self.hint, **attrs)
        if i.shape.is_unbounded:
            i.shape = _inferred(i)
        i.metadata = self.metadata
        return self.computation.attach(i)

    def checked(self, opcode: str, operands: Sequence[Instruction], shape: Shape, **attrs: Any) -> Instruction:
        """An instruction whose shape is stated, and must satisfy the op's rule, too."""
        i = self.add(opcode, operands, shape, **attrs)
        ruled = i.op.shape(i, *[o.shape for o in operands])
        if not fits(ruled, shape):
            raise HeronError("SHLO004", f"{opcode} gives {ruled.bare}, but {shape.bare} is stated")
        return i

    def parameter(self, number: int, shape: Shape, name: str) -> Instruction:
        """A parameter. Raises SHLO011 for a shape with open sizes."""
        shape = plain_shape(shape)
        if shape.is_unbounded:
            raise HeronError("SHLO011", f"the sizes of '{name}' are not known: {shape.bare}")
        return self.computation.add_parameter(number, shape, name)

    def constant(self, key: object, shape: Shape, make_array: Callable[[], Any]) -> Instruction:
        """A constant; the same one when `key` and shape were seen before in this computation."""
        found = self._constants.get((key, shape))
        if found is None:
            found = make("constant", (), shape, literal=Literal(shape, make_array()))
            self._constants[key, shape] = self.computation.attach(found)
        return found

    def scalar(self, value: Any, element_type: ElementType) -> Instruction:
        """A rank-0 constant."""
        literal = literals.scalar(element_type, value)
        return self.constant((literal.array.tobytes(), "scalar"), literal.shape, lambda: literal.array)

    def full(self, value: Any, shape: Shape) -> Instruction:
        """`value` everywhere."""
        return self.broadcast_scalar(self.scalar(value, shape.element_type), shape)

    def broadcast_scalar(self, x: Instruction, shape: Shape) -> Instruction:
        """A scalar in every element of `shape`."""
        if not shape.rank:
            return x
        found = self._spread.get((x, shape))
        if found is None:
            found = self._spread[x, shape] = self.add("broadcast", (x,), shape, dimensions=())
        return found

    def tuple(self, parts: Sequence[Instruction]) -> Instruction:
        return self.add("tuple", parts)

    def parts(self, i: Instruction) -> list[Instruction]:
        """The elements of a tuple."""
        return [self.add("get-tuple-element", (i,), index=n) for n in range(len(i.shape.tuple_shapes or ()))]

    def packed(self, parts: Sequence[Instruction]) -> Instruction:
        """One value as itself, any other number as a tuple."""
        return parts[0] if len(parts) == 1 else self.tuple(parts)

    def unpacked(self, i: Instruction, count: int) -> list[Instruction]:
        """The inverse of `packed`."""
        return [i] if count == 1 else self.parts(i)

    # -- names -------------------------------------------------------------------------------------------------------
    def find(self, name: str) -> Instruction | None:
        """The instruction of a name, if this block itself defines it."""
        return self.values.get(name) or self.values.get(base(name))

    def value(self, name: str, op: Operation) -> Instruction:
        """The instruction of a name; constants of enclosing blocks are repeated here."""
        found = self.find(name)
        if found is not None:
            return found
        outer, block = None, self.parent
        while block is not None and outer is None:
            outer, block = block.find(name), block.parent
        if outer is None:
            self._undefined(name, op)
        if outer.opcode != "constant":
            op.fail(
                "SHLO010",
                f"{op.name} uses '{name}', a value from outside this region",
                why="only the bodies of while, if and case may do that; constants may be used anywhere",
            )
        copy = self.constant(outer, outer.shape, lambda: outer.attrs["literal"].array)
        self.values[name] = copy
        return copy

    def _undefined(self, name: str, op: Operation) -> NoReturn:
        known: set[str] = set()
        block: Block | None = self
        while block is not None:
            known |= block.values.keys()
            block = block.parent
        if f"{name}#0" in known:
            op.fail("SHLO003", f"'{name}' has several results", hint=f"say which, such as {name}#0")
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean '{near[0]}'?" if near else None
        op.fail("SHLO003", f"{op.name} uses '{name[:40]}', which is not defined before", hint=hint)

    def quantization(self, name: str) -> Quantization | None:
        """The quantization of a value, defined here or in an enclosing block; None for plain values."""
        block: Block | None = self
        while block is not None:
            found = block.quantized.get(name) or block.quantized.get(base(name))
            if found is not None:
                return found
            block = block.parent
        return None

    def _note(self, name: str, shape: Shape) -> None:
        """Remember the quantization of a value of a quantized type."""
        found = quantization(shape)
        if found is not None:
            self.quantized[name] = found

    # -- operations --------------------------------------------------------------------------------------------------
    def run(self, region: Region, code_at: int) -> list[Instruction]:
        """Import all operations; the values the block returns."""
        from heron.frontends.stablehlo.lower.quantized import lowered

        values, origin = self.values, self.importer.locations.origin
        is_quantized = self.importer.is_quantized
        if is_quantized:
            for argument in region.arguments:
                self._note(argument.name, argument.type)
        for op in region.operations:
            if op.name in RETURNS:
                self.metadata, self.hint = origin(op.place)
                operands = [values.get(o) or self.value(o, op) for o in op.operands]
                _check_returned(op, operands)
                return operands
            lower = RULES.get(op.name)
            if lower is None:
                unknown(op)
            self.metadata, self.hint = origin(op.place)
            operands = [values.get(o) or self.value(o, op) for o in op.operands]
            try:
                results = lowered(self, op, operands, lower) if is_quantized else lower(self, op, operands)
            except HeronError as error:
                if isinstance(error.where, Span):
                    raise
                raise HeronError(error.code, error.what, where=op.span(), why=error.why, hint=error.hint) from None
            except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
                op.fail("SHLO006", f"the operands or attributes of {op.name} do not fit", why=str(error)[:100])
            self._bind(op, results)
        self.importer.program.source.fail("SHLO001", "this region does not end with a return", code_at)

    def _bind(self, op: Operation, results: Results) -> None:
        """Give results their names, after checking their types."""
        if isinstance(results, Instruction):
            results = (results,)
        if len(results) != len(op.results):
            op.fail("SHLO004", f"{op.name} has {len(results)} results, {len(op.results)} are named")
        if len(op.types) != len(op.results):
            op.fail("SHLO004", f"{op.name} has {len(op.results)} results but {len(op.types)} types")
        for n, (name, i, stated) in enumerate(zip(op.results, results, op.types, strict=True)):
            if i.shape is not stated and not fits(i.shape, stated):
                which = f"result {n} of " if len(results) > 1 else ""
                op.fail("SHLO004", f"{which}{op.name} is {i.shape.bare}", why=f"the text says {stated.bare}")
            if name in self.values:
                op.fail("SHLO003", f"'{name}' is defined twice")
            self.values[name] = i if self.folding is None else self.folded(i)
            if self.importer.is_quantized:
                self._note(name, stated)
        if op.attrs:
            carry(op, results)

    def folded(self, i: Instruction) -> Instruction:
        """The constant an instruction is known to be, else the instruction."""
        assert self.folding is not None
        found = self.folding.value(i)
        if i.opcode == "constant" or not isinstance(found, (np.ndarray, np.generic)):
            return i
        return self.constant(("known", found.tobytes()), i.shape, lambda: np.asarray(found))

    # -- regions -----------------------------------------------------------------------------------------------------
    def inner(self, name: str) -> Block:
        """A block for a region of the operation being imported."""
        return Block(self.importer, self.importer.new_computation(name), self, self.folding)

    def region(self, op: Operation, n: int, name: str) -> Computation:
        """Region `n` as a computation of its own, one parameter an argument."""
        if n >= len(op.regions):
            op.fail("SHLO006", f"{op.name} needs a region", why=f"{len(op.regions)} given")
        region, block = op.regions[n], self.inner(name)
        for k, a in enumerate(region.arguments):
            block.define(a.name, block.parameter(k, a.type, plain(a.name)), op)
        return block.finish(block.packed(block.run(region, region.at)))

    def finish(self, root: Instruction) -> Computation:
        """Set the root and drop unused instructions, as XLA does when it imports a program."""
        computation = self.computation
        computation.root = root
        for i in reversed(computation.instructions):
            if not i.users and i is not root and i.opcode != "parameter" and not i.has_side_effect:
                computation.remove(i)
        return computation

    def define(self, name: str, i: Instruction, op: Operation) -> None:
        """Let a name stand for an instruction."""
        if name in self.values:
            op.fail("SHLO003", f"'{name}' is defined twice")
        self.values[name] = i

    def dense(self, op: Operation) -> Instruction:
        """A constant from its text; equal text gives the same instruction."""
        token, shape = op.words[0], op.types[0]
        return self.constant(token, shape, lambda: dense(token, shape))


def _check_returned(op: Operation, operands: Sequence[Instruction]) -> None:
    """Raise SHLO004 for a return of values that are not of the types that it states."""
    if op.given is None:
        return
    if len(op.given) != len(operands):
        op.fail("SHLO004", f"{op.name} has {len(operands)} operands but {len(op.given)} types")
    for n, (i, stated) in enumerate(zip(operands, op.given, strict=True)):
        if i.shape is not stated and not fits(i.shape, stated):
            op.fail("SHLO004", f"operand {n} of {op.name} is {i.shape.bare}", why=f"the text says {stated.bare}")


def _inferred(i: Instruction) -> Shape:
    """The shape that follows from the operands where the text leaves sizes open."""
    found = i.op.shape(i, *[o.shape for o in i.operands])
    if found.is_unbounded:
        why = "operands: " + (", ".join(str(o.shape.bare) for o in i.operands) or "none")
        raise HeronError("SHLO011", f"the sizes of {i.opcode} do not follow from its operands: {found.bare}", why=why)
    if not fits(found, i.shape):
        raise HeronError("SHLO004", f"{i.opcode} gives {found.bare}, but {i.shape.bare} is stated")
    return found


def unknown(op: Operation) -> NoReturn:
    """Raise SHLO002 for an operation without a rule."""
    prefix, dot, name = op.name.partition(".")
    near = difflib.get_close_matches(op.name, RULES, 1, 0.75)
    if not near and not dot:
        near = difflib.get_close_matches(f"stablehlo.{prefix}", RULES, 1, 0.8)
    hint = f"did you mean '{near[0]}'?" if near else "heron reads func, stablehlo, chlo and sdy operations"
    if dot and prefix not in ("stablehlo", "chlo", "func", "sdy"):
        hint = "lower the program to StableHLO first" if not near else hint
    op.fail("SHLO002", f"unknown operation '{op.name[:60]}'", hint=hint)
