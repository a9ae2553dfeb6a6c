"""Text of one instruction: result shape, op, operands, attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from heron.errors import HeronError, Span
from heron.hlo.ir import op as ops
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction, operand_count_text
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Attr, Op
from heron.hlo.ir.shape import Shape, array
from heron.hlo.text import async_sugar, carried, common, rules
from heron.hlo.text.attributes import READ
from heron.hlo.text.cursor import Cursor
from heron.hlo.text.lexer import END, WORD, Source
from heron.hlo.text.literals import NOWHERE, LiteralError, parse_literal
from heron.hlo.text.nearest import nearest

#: other spellings of an attribute: op, text name -> attribute, place in its tuple
SPELLINGS = {
    ("conditional", "true_computation"): ("branch_computations", 0),
    ("conditional", "false_computation"): ("branch_computations", 1),
    ("custom-call", "to_apply"): ("called_computations", 0),
}
#: attributes that say nothing beyond the others, and are dropped
REDUNDANT = {"mode": "replica_groups"}

_REQUIRED: dict[Op, tuple[str, ...]] = {}


class InstructionParser(Cursor):
    """Reads instructions into the computation at hand. `Parser` adds computations and the module."""

    def __init__(
        self, source: Source, elided_as_zero: bool = False, elsewhere: Mapping[str, np.ndarray] = NOWHERE
    ) -> None:
        super().__init__(source)
        self.elided_as_zero, self.elsewhere = elided_as_zero, elsewhere
        self.result = Module("")
        self.computations: dict[str, Computation] = {}
        self.places: dict[Instruction, int] = {}  # the token each instruction begins at
        self.scope: Computation | None = None  # that instructions in operands go to
        self.free: Computation | None = None  # where an operand nobody defined is a parameter

    def computation_reference(self) -> Computation:
        """The name of a computation that stands above, or a body in place."""
        raise NotImplementedError

    def instruction_span(self, n: int) -> Span:
        """From the instruction's name to the end of its line."""
        last = n
        while self.tokens[last + 1] != END and not self.source.new_line_before(last + 1):
            last += 1
        return self.source.span(n, last)

    # -- an instruction ------------------------------------------------------------------------------------------------
    def right_side(self, first: int, name: str | None, names: dict[str, Instruction]) -> Instruction:
        """``shape op(operands), attributes`` of the instruction that begins at token `first`.

        One without a name stands among the operands of another, where attributes are out of place.
        """
        shape = self._result_shape()
        opcode = self.tokens[self.n]
        if opcode[:9] == "constant(":
            op = ops.get("constant")
            operands: list[Instruction] = []
            attrs: dict[str, Any]
            attrs, shape = self._constant(opcode[9:-1], shape)
        elif opcode == "constant" and self.tokens[self.n + 1] == "(":  # a blank before the parenthesis
            op, operands = ops.get("constant"), []
            self.n += 1
            attrs, shape = self._constant(self._in_parentheses(), shape)
        else:
            op = ops.REGISTRY.get(opcode) or async_sugar.find(opcode) or self._unknown_op(opcode)
            self.n += 1
            if op.name == "parameter":
                operands, attrs = [], {"number": self._parameter_number()}
            else:
                at = self.n
                operands, attrs = self._operands(op, names), {}
                if op.name != opcode and op.name in async_sugar.FOLLOWING:
                    self._check_wrapped(opcode, operands[0], at)
        return self._finish(first, op, operands, shape, attrs, names, name)

    def _check_wrapped(self, opcode: str, operand: Instruction, at: int) -> None:
        """``y-done`` ends a ``y-start``, nothing else."""
        start = async_sugar.start_of(operand)
        if start is None:
            self.fail(
                "TXT016", f"{opcode} needs an asynchronous op as its operand", at + 1, why=f"it is {operand.opcode}"
            )
        inner = start.calls.root.opcode
        if inner != opcode.rpartition("-")[0]:
            self.fail("TXT016", f"{opcode} cannot end {start.name}", at - 1, why=f"that runs {inner}")

    def _result_shape(self) -> Shape | None:
        """The shape, or None when the text leaves it out: ``name = add(a, b)``."""
        token = self.tokens[self.n]
        found = self._shapes.get(token)
        if found is not None:
            self.n += 1
            return found
        if token != "(" and "[" not in token and self.tokens[self.n + 1] == "(" and not self.at_buffer():
            return None
        return self.shape()

    def _unknown_op(self, opcode: str) -> Op:
        if not WORD.fullmatch(opcode):
            self.unexpected("an op")
        try:
            return ops.get(opcode[:60])
        except HeronError as error:
            raise error.located(self.source.span(self.n)) from None

    def _in_parentheses(self) -> str:
        """The text of what is in parentheses; the cursor is on the last one after."""
        first = self.n
        depth = 0
        while True:
            token = self.tokens[self.n]
            if token == END:
                self.unexpected("')'")
            depth += (token == "(") - (token == ")")
            if depth == 0:
                return self.source.slice(first, self.n)[1:-1]
            self.n += 1

    def _literal(self, text: str, shape: Shape | None) -> Any:
        if shape is None:
            self.fail("TXT011", "a constant needs its shape", hint="name = f32[2] constant({1, 2})")
        try:
            found = parse_literal(text, shape, self.elided_as_zero, self.elsewhere)
        except LiteralError as error:
            self.fail(error.code, error.what, why=error.why, hint=error.hint)
        self.n += 1
        return found

    def _constant(self, text: str, shape: Shape | None) -> tuple[dict[str, Any], Shape | None]:
        """The value as an attribute, and the shape it has."""
        shape = shape and rules.literal_shape(shape)
        return {"literal": self._literal(text, shape)}, shape

    def _parameter_number(self) -> int:
        self.expect("(")
        number = self.integer("the parameter's number")
        if not 0 <= number < 2**31:
            self.fail("TXT010", "this is not a parameter number", self.n - 1)
        self.expect(")")
        return number

    # -- operands ------------------------------------------------------------------------------------------------------
    def _operands(self, op: Op, names: dict[str, Instruction]) -> list[Instruction]:
        """Names in parentheses, each with or without its shape before it."""
        tokens = self.tokens
        opening = self.n
        self.expect("(")
        found: list[Instruction] = []
        if not self.accept(")"):
            n = self.n
            while True:
                token = tokens[n]
                if token == ",":  # one more than is needed
                    n += 1
                    continue
                if token == ")":
                    self.n = n + 1
                    break
                operand = names.get(token) or names.get(token[1:] if token[:1] == "%" else "")
                if operand is None or tokens[n + 1] == "(":
                    self.n = n
                    operand = self._typed_operand(names)
                    n = self.n - 1
                found.append(operand)
                after = tokens[n + 1]
                n += 2
                if after == ",":
                    continue
                self.n = n
                if after == ")":
                    break
                self.n -= 1
                self.unexpected("',' or ')' in the operands")
        count = len(found)
        if count < op.min_operands or (op.max_operands is not None and count > op.max_operands):
            self._wrong_count(op, count, opening)
        return found

    def _wrong_count(self, op: Op, count: int, opening: int) -> NoReturn:
        why = "operands: " + (", ".join(op.operands) or "none")
        span = self.source.span(opening - 1, self.n - 1)
        raise HeronError("HLO004", f"{op.name} takes {operand_count_text(op)}, {count} given", where=span, why=why)

    def _typed_operand(self, names: dict[str, Instruction]) -> Instruction:
        first = self.n
        shape: Shape | None = None
        token = self.tokens[first]
        if token == "(" or "[" in token or self.at_buffer():
            shape = self.shape()
            while self.free is None and self.accept(","):  # one between the shape and the name
                pass
            token = self.tokens[self.n]
        if token[:9] == "constant(" or (self.tokens[self.n + 1] == "(" and WORD.fullmatch(token)):
            return self._nested(first, names)
        if self.free is not None and self.scope is self.free:
            return self._free_operand(shape, names)
        name = self.name("an operand")
        found = names.get(name)
        if found is None:
            self._unknown_operand(name, names)
        if shape is not None and _sizes(shape) is not _sizes(found.shape):
            why = f"its shape is {found.shape.bare}, but {shape.bare} is stated here"
            self.fail("TXT007", f"operand '{name[:60]}' has another shape", self.n - 1, why=why)
        return found

    def _nested(self, first: int, names: dict[str, Instruction]) -> Instruction:
        """An instruction among the operands of another: ``add(f32[] parameter(0), ...)``."""
        assert self.scope is not None
        self.n = first
        self.enter()
        i = self.scope.attach(self.right_side(first, None, names))
        self.depth -= 1
        self.places[i] = first
        return i

    def _free_operand(self, shape: Shape | None, names: dict[str, Instruction]) -> Instruction:
        """An operand of an instruction that stands alone: a parameter, its shape given."""
        assert self.free is not None
        number = len(self.free)
        name = self.name() if WORD.fullmatch(self.tokens[self.n]) else f"_{number}"
        if name not in names:
            if shape is None:
                why = "an instruction outside a module must state its operands' shapes"
                self.fail("TXT007", f"operand '{name[:60]}' needs its shape", self.n - 1, why=why)
            names[name] = self.free.add_parameter(number, shape, name)
        return names[name]

    def _unknown_operand(self, name: str, names: dict[str, Instruction]) -> NoReturn:
        hint = nearest(name, names)
        tokens = self.tokens
        for n in range(self.n, len(tokens) - 1):
            if tokens[n + 1] == "=" and tokens[n].lstrip("%") == name and self.source.new_line_before(n):
                hint = "it is defined below: an instruction must precede its users"
                break
            if tokens[n] == "}" and self.source.new_line_before(n):
                break
        self.fail("TXT007", f"unknown operand '{name[:60]}'", self.n - 1, hint=hint)

    # -- attributes ----------------------------------------------------------------------------------------------------
    def _finish(
        self,
        first: int,
        op: Op,
        operands: list[Instruction],
        shape: Shape | None,
        attrs: dict[str, Any],
        names: dict[str, Instruction],
        name: str | None,
    ) -> Instruction:
        """Read the attributes, then make the instruction."""
        extras, metadata, before = None, None, ()
        seen: rules.Seen = {}
        if self.tokens[self.n] == "," and name is not None:
            extras, metadata, before = self._attributes(op, attrs, names, seen)
        rules.apply(op.name, self, operands, attrs, seen)
        self._check_required(first, op, attrs)
        try:
            if isinstance(op, async_sugar.Start):
                op, attrs = self._unwrapped(op, operands, shape, attrs, extras or {})
            shape = rules.settled_shape(op.name, operands, shape)
            if shape is None:
                rules.need_sizes(op, operands)
            label = f"{op.name}.anon" if name is None else name
            i = Instruction(op, operands, shape, attrs, label, extras, metadata)
            if shape is None:
                i.shape = rules.inferred_shape(i)
        except HeronError as error:  # a shape that could not be inferred
            span = self.instruction_span(first)
            raise HeronError(error.code, error.what, where=span, why=error.why, hint=error.hint) from None
        if extras:
            self._check_extras(i, first)
        for predecessor in before:
            i.add_control_predecessor(predecessor)
        return i

    def _attributes(
        self, op: Op, attrs: dict[str, Any], names: dict[str, Instruction], seen: rules.Seen
    ) -> tuple[dict[str, Any] | None, Metadata | None, Sequence[Instruction]]:
        """Fill `attrs` with the op's own attributes, `seen` with the token each stands at.

        Returns what any instruction may carry: extras, metadata, control predecessors.
        """
        extras: dict[str, Any] | None = None
        metadata: Metadata | None = None
        before: list[Instruction] = []
        tokens, declared = self.tokens, op.attributes
        while tokens[self.n] == ",":
            at = self.n + 1
            name = tokens[at]
            if tokens[at + 1] != "=":
                self.n = at
                self.word("an attribute")
                self.unexpected(f"'=' after '{name[:40]}'")
            self.n = at + 2
            if name in seen:
                self.fail("TXT006", f"'{name}' is given twice", at)
            seen[name] = at
            spec = declared.get(name)
            if spec is not None:
                attrs[name] = READ[spec.kind](self, spec, name)
            elif name == "metadata":
                metadata = common.read_metadata(self)
            elif name in common.READ:
                value = common.READ[name](self)
                if value is not None:
                    extras = {} if extras is None else extras
                    extras[name] = value
            elif REDUNDANT.get(name, name) in declared:
                self.raw()
            elif name == "control-predecessors":
                before = list(self.braced(lambda: self._typed_operand(names)))
            else:
                self._other_spelling(op, name, at, attrs)
        return extras, metadata, before

    def _check_extras(self, i: Instruction, first: int) -> None:
        """One replication flag for each leaf; a sharding for all leaves of a tuple holds for each."""
        replicated = i.extras.get("parameter_replication")
        leaves = sum(1 for _ in i.shape.leaves())
        if replicated is not None and len(replicated) != leaves:
            span = self.instruction_span(first)
            what = f"parameter_replication has {len(replicated)} flags for {leaves} buffers"
            raise HeronError("TXT004", what, where=span, why=f"the shape is {i.shape.bare}")
        if i.shape.is_tuple and "sharding" in i.extras:
            i.extras["sharding"] = carried.spread(i.extras["sharding"], i.shape)

    def _unwrapped(
        self,
        start: async_sugar.Start,
        operands: list[Instruction],
        shape: Shape | None,
        attrs: dict[str, Any],
        extras: dict[str, Any],
    ) -> tuple[Op, dict[str, Any]]:
        """The expansion of ``y-start``: an async-start and the computation that it calls."""
        thread = attrs.pop(async_sugar.THREAD, None)
        aliasing = None if async_sugar.ALIASING in start.inner.attributes else attrs.pop(async_sugar.ALIASING, None)
        c = self.result.add_computation(async_sugar.wrap(start, operands, shape, attrs, extras))
        full: dict[str, Any] = {"calls": c}
        if aliasing:
            full[async_sugar.ALIASING] = aliasing
        if thread is not None and thread != async_sugar.MAIN:
            full[async_sugar.THREAD] = thread
            async_sugar.set_thread(c, thread)
        return ops.get("async-start"), full

    def _other_spelling(self, op: Op, name: str, at: int, attrs: dict[str, Any]) -> None:
        known = SPELLINGS.get((op.name, name))
        if known is None:
            self._unknown_attribute(op, name, at)
        attribute, place = known
        value = self.computation_reference()
        rest = attrs.get(attribute, ())
        attrs[attribute] = (value, *rest) if place == 0 else (*rest, value)

    def _unknown_attribute(self, op: Op, name: str, at: int) -> NoReturn:
        known = [*op.attributes, *common.READ, "metadata", "control-predecessors"]
        if not WORD.fullmatch(name):
            self.n = at
            self.unexpected("an attribute")
        what, own = f"{op.name} has no attribute '{name[:60]}'", ", ".join(op.attributes) or "none"
        self.fail("TXT004", what, at, why=f"its attributes: {own}", hint=nearest(name, known))

    def _check_required(self, first: int, op: Op, attrs: dict[str, Any]) -> None:
        required = _REQUIRED.get(op)
        if required is None:
            required = _REQUIRED[op] = tuple(n for n, a in op.attributes.items() if a.required)
        for name in required:
            if name not in attrs:
                span = self.instruction_span(first)
                hint = f"add {name}=" + _example(op.attributes[name])
                raise HeronError("TXT005", f"{op.name} needs the attribute '{name}'", where=span, hint=hint)


def _sizes(shape: Shape) -> Shape:
    """The shape without its layout; a bound of a dimension counts as its size."""
    bare = shape.bare
    return array(bare.element_type, bare.dims) if bare.dynamic else bare


def _example(attr: Attr) -> str:
    """An example of the attribute's value."""
    return attr.choices[0] if attr.choices else attr.kind.value.partition(" → ")[0]
