"""Parser: HLO text to a Module. XLA's long form and its short ones, as XLA prints them and as people write them.

The ops' declarations drive it: an instruction's attributes are read by their `AttrKind`. As in XLA, computations and
operands must stand before their use, a computation without ROOT returns its last instruction, and without ENTRY the
last computation is the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

import heron.hlo.ops  # noqa: F401  (fills the registry)
from heron.errors import HeronError, Span
from heron.hlo.ir import op as ops
from heron.hlo.ir import types
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction, operand_count_text
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Attr, Op
from heron.hlo.ir.shape import Shape, array
from heron.hlo.text import async_sugar, carried, common, frames, header, rules
from heron.hlo.text.attributes import READ
from heron.hlo.text.cursor import Cursor
from heron.hlo.text.header import NO_FRAMES
from heron.hlo.text.lexer import END, WORD, Source
from heron.hlo.text.literals import NOWHERE, LiteralError, parse_literal
from heron.hlo.text.nearest import nearest
from heron.hlo.verifier import problems

#: other spellings of an attribute: op, text name -> attribute, place in its tuple
SPELLINGS = {
    ("conditional", "true_computation"): ("branch_computations", 0),
    ("conditional", "false_computation"): ("branch_computations", 1),
    ("custom-call", "to_apply"): ("called_computations", 0),
}
#: attributes that say nothing beyond the others, and are dropped
REDUNDANT = {"mode": "replica_groups"}

_REQUIRED: dict[Op, tuple[str, ...]] = {}


def parse(
    text: str,
    filename: str = "<text>",
    *,
    verify: bool = False,
    elided_as_zero: bool = False,
    elsewhere: Mapping[str, np.ndarray] = NOWHERE,
) -> Module:
    """The module a text describes.

    Args:
        text: HLO text.
        filename: what errors call the text.
        verify: also run the verifier, with its findings underlined in the text.
        elided_as_zero: let constants printed as ``{...}`` be zero instead of an error.
        elsewhere: bytes of the constants that the text has digests of (`PrintOptions.digest_constants`), by digest.

    Raises:
        HeronError: TXT0xx for malformed text, HLO0xx for unknown ops or types and, with `verify`, HLO1xx; always with
            the place.
    """
    return Parser(Source(text, filename), elided_as_zero, elsewhere).module(verify)


class Parser(Cursor):
    """One run over one text."""

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

    # -- module ------------------------------------------------------------------------------------------------------
    def module(self, verify: bool) -> Module:
        """The whole text: a module, computations without its first line, or a single instruction."""
        module = self.result
        module.filename = self.source.filename
        single = self._is_instruction()
        headed = self.accept("HloModule")
        if headed:
            module.name = self.name("the module's name")
            self.accept(":")
            module.header = header.read_header(self)
        elif not single and not self._is_computation():
            self.unexpected("'HloModule'", hint="HLO text begins with a line: HloModule name")
        if single:
            self._single()
        while self.tokens[self.n] != END:
            self._computation()
        if not len(module.computations):
            self.unexpected("a computation")
        if module.entry is None:
            module.entry = module.computations[-1]
        if not module.name:
            module.name = f"module_{module.entry.name}"
        if "stack_frames" in module.header or self.framed:
            self._number_frames()
        module.entry_layout = module.header.pop("entry_computation_layout", None)
        if module.header.pop("is_scheduled", single):
            fused = module.fusion_bodies()
            module.schedule = {c: c.instructions for c in module.computations if c not in fused}
        if verify:
            self._verify()
        return module

    def _number_frames(self) -> None:
        """Keep the frames that instructions refer to, as XLA numbers them."""
        located = [i for i in self.places if i.metadata is not None and i.metadata.stack_frame_id]
        tables = self.result.header.pop("stack_frames", NO_FRAMES)
        kept, numbers = frames.used(tables, (i.metadata.stack_frame_id for i in located if i.metadata))
        if kept.frames:
            self.result.header["stack_frames"] = kept
        for i in located:
            assert i.metadata is not None
            number = numbers.get(i.metadata.stack_frame_id, 0)
            if number != i.metadata.stack_frame_id:
                renumbered = replace(i.metadata, stack_frame_id=number)
                i.metadata = None if renumbered == Metadata() else renumbered

    def _is_computation(self) -> bool:
        first, second = self.tokens[:2]
        return first == "ENTRY" or (WORD.fullmatch(first) is not None and second[:1] in ("{", "("))

    def _is_instruction(self) -> bool:
        first, second = self.tokens[:2]
        return second == "=" or first == "(" or "[" in first

    def _single(self) -> None:
        """``name = shape op(shape operand, ...)`` alone: its operands become parameters."""
        self.result.name = "_"
        self.scope = self.free = c = self.result.add_computation(Computation("_"), entry=True)
        name = "_"
        if self.tokens[1] == "=":
            name = self.name("an instruction")
            self.n += 1
        c.root = c.attach(self._right_side(0, name, {}))
        self.places[c.root] = 0
        self.free = None
        if self.tokens[self.n] != END:
            self.unexpected("the end of the text", hint="several instructions belong into a computation: name { ... }")

    def _verify(self) -> None:
        for problem in problems(self.result):
            raise problem.error(self._place(problem.instruction))

    def _place(self, i: Instruction | None) -> Span | None:
        return None if i is None or i not in self.places else self._instruction_span(self.places[i])

    def _instruction_span(self, n: int) -> Span:
        """From the instruction's name to the end of its line."""
        last = n
        while self.tokens[last + 1] != END and not self.source.new_line_before(last + 1):
            last += 1
        return self.source.span(n, last)

    # -- computations ------------------------------------------------------------------------------------------------
    def _computation(self) -> None:
        first = self.n
        entry = self.tokens[first] == "ENTRY" and self.tokens[first + 1] != "{"
        if entry:
            self.n += 1
            if self.result.entry is not None:
                self.fail("TXT009", "a second ENTRY", first, why=f"'{self.result.entry.name}' is the entry already")
        at = self.n
        name = self.name("a computation")
        if name in self.computations:
            self.fail("TXT006", f"computation '{name}' is defined twice", at)
        result = self._signature() if self.tokens[self.n] == "(" else None
        c = self._body(printable(name), entry)
        self.computations[name] = c
        if result is not None and result.bare is not c.root.shape.bare:
            why = f"the signature says {result.bare}, the root is {c.root.shape.bare}"
            self.fail("TXT015", f"the signature of '{name}' does not fit its body", at, why=why)
        if self.accept(","):
            if self.name("execution_thread") != "execution_thread":
                self.fail("TXT004", "only execution_thread may follow a computation", self.n - 1)
            self.expect("=")
            thread = self.string()
            if thread != async_sugar.MAIN:
                c.extras["execution_thread"] = thread

    def _signature(self) -> Shape:
        """``(name: shape, ...) -> shape``; the parameters say it again, so only the result is handed on."""
        self.expect("(")
        first = True
        while not self.accept(")"):
            if not first:
                self.expect(",")
            first = False
            self.name("a parameter's name")
            self.accept(":")
            self.shape()
        self.expect("->")
        return self.shape()

    def _body(self, name: str, entry: bool = False) -> Computation:
        """Instructions in braces."""
        if self.tokens[self.n][:1] == "{" and self.tokens[self.n] != "{":
            self.fail("TXT015", f"computation '{name}' has no instructions")
        self.expect("{")
        self.enter()
        outer = self.scope
        self.scope = c = Computation(name)
        names: dict[str, Instruction] = {}
        while self.tokens[self.n] != "}":
            self._instruction(c, names)
        if not names:
            self.fail("TXT015", f"computation '{name}' has no instructions")
        self.n += 1
        self.depth -= 1
        self.scope = outer
        if c.root is None:
            c.root = next(reversed(names.values()))
        return self.result.add_computation(c, entry)

    def computation_reference(self) -> Computation:
        """The name of a computation that stands above, or a body in place."""
        token = self.tokens[self.n]
        if token[:1] == "{":
            return self._body("_")
        name = self.name("a computation's name")
        found = self.computations.get(name)
        if found is None:
            self._unknown_computation(name)
        return found

    def _unknown_computation(self, name: str) -> NoReturn:
        hint = nearest(name, self.computations)
        if self._defined_later(name):
            hint = "it is defined below: computations must stand before their callers"
        self.fail("TXT008", f"unknown computation '{name[:60]}'", self.n - 1, hint=hint)

    def _defined_later(self, name: str) -> bool:
        """Whether the rest of the text has a computation of that name."""
        for n in range(self.n, len(self.tokens) - 1):
            if self.tokens[n].lstrip("%") == name and self.tokens[n + 1] in ("{", "("):
                return self.source.new_line_before(n) or self.tokens[n - 1] == "ENTRY"
        return False

    # -- instructions ------------------------------------------------------------------------------------------------
    def _instruction(self, c: Computation, names: dict[str, Instruction]) -> None:
        tokens = self.tokens
        root = tokens[self.n] == "ROOT" and tokens[self.n + 1] != "="
        if root:
            if c.root is not None:
                self.fail("TXT009", "a second ROOT", why=f"'{c.root.name}' is the root of '{c.name}' already")
            self.n += 1
        first = self.n
        token = tokens[first]
        if tokens[first + 1] != "=" or not WORD.fullmatch(token):
            self._no_instruction()
        bare = token[1:] if token[0] == "%" else token
        self.n = first + 2
        i = self._right_side(first, printable(bare), names)
        c.attach(i)
        self._define(bare, i, names, first)
        if root:
            c.root = i

    def _right_side(self, first: int, name: str | None, names: dict[str, Instruction]) -> Instruction:
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
        inner = start.attrs["calls"].root.opcode
        if inner != opcode.rpartition("-")[0]:
            self.fail("TXT016", f"{opcode} cannot end {start.name}", at - 1, why=f"that runs {inner}")

    def _no_instruction(self) -> NoReturn:
        self.name("an instruction: name = shape op(operands)")
        self.unexpected("'=' after the instruction's name")

    def _define(self, bare: str, i: Instruction, names: dict[str, Instruction], n: int) -> None:
        """Names are found with and without the percent sign."""
        if bare in names:
            self.fail("TXT006", f"'{bare[:60]}' is defined twice in this computation", n)
        names[bare] = i
        self.places[i] = n

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
            self.fail("TXT010", "this is no parameter number", self.n - 1)
        self.expect(")")
        return number

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
            why = f"it is {found.shape.bare}, here it is called {shape.bare}"
            self.fail("TXT007", f"operand '{name[:60]}' has another shape", self.n - 1, why=why)
        return found

    def _nested(self, first: int, names: dict[str, Instruction]) -> Instruction:
        """An instruction among the operands of another: ``add(f32[] parameter(0), ...)``."""
        assert self.scope is not None
        self.n = first
        self.enter()
        i = self.scope.attach(self._right_side(first, None, names))
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
                why = "an instruction that stands alone defines its operands"
                self.fail("TXT007", f"operand '{name[:60]}' needs its shape", self.n - 1, why=why)
            names[name] = self.free.add_parameter(number, shape, name)
        return names[name]

    def _unknown_operand(self, name: str, names: dict[str, Instruction]) -> NoReturn:
        hint = nearest(name, names)
        tokens = self.tokens
        for n in range(self.n, len(tokens) - 1):
            if tokens[n + 1] == "=" and tokens[n].lstrip("%") == name and self.source.new_line_before(n):
                hint = "it is defined below: an instruction must stand before its users"
                break
            if tokens[n] == "}" and self.source.new_line_before(n):
                break
        self.fail("TXT007", f"unknown operand '{name[:60]}'", self.n - 1, hint=hint)

    # -- attributes --------------------------------------------------------------------------------------------------
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
        extras: dict[str, Any] | None = None
        metadata: Metadata | None = None
        before: list[Instruction] = []
        seen: rules.Seen = {}
        label, name = name, ""
        tokens, declared = self.tokens, op.attributes
        while tokens[self.n] == "," and label is not None:
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
        rules.apply(op.name, self, operands, attrs, seen)
        self._check_required(first, op, attrs)
        name = f"{op.name}.anon" if label is None else label
        try:
            if isinstance(op, async_sugar.Start):
                op, attrs = self._unwrapped(op, operands, shape, attrs, extras or {})
            shape = rules.settled_shape(op.name, operands, shape)
            if shape is None:
                rules.need_sizes(op, operands)
            i = Instruction(op, operands, shape, attrs, name, extras, metadata)
            if shape is None:
                i.shape = rules.inferred_shape(i)
        except HeronError as error:  # a shape that could not be inferred
            span = self._instruction_span(first)
            raise HeronError(error.code, error.what, where=span, why=error.why, hint=error.hint) from None
        if extras:
            self._check_extras(i, first)
        for predecessor in before:
            i.add_control_predecessor(predecessor)
        return i

    def _check_extras(self, i: Instruction, first: int) -> None:
        """One replication flag for each leaf; a sharding for all leaves of a tuple holds for each."""
        replicated = i.extras.get("parameter_replication")
        leaves = sum(1 for _ in i.shape.leaves())
        if replicated is not None and len(replicated) != leaves:
            span = self._instruction_span(first)
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
        """What ``y-start`` stands for: an async-start and the computation it calls."""
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
        own = ", ".join(op.attributes) or "none"
        self.fail(
            "TXT004",
            f"{op.name} has no attribute '{name[:60]}'",
            at,
            why=f"its attributes: {own}",
            hint=nearest(name, known),
        )

    def _check_required(self, first: int, op: Op, attrs: dict[str, Any]) -> None:
        required = _REQUIRED.get(op)
        if required is None:
            required = _REQUIRED[op] = tuple(n for n, a in op.attributes.items() if a.required)
        for name in required:
            if name not in attrs:
                span = self._instruction_span(first)
                hint = f"add {name}=" + _example(op.attributes[name])
                raise HeronError("TXT005", f"{op.name} needs the attribute '{name}'", where=span, hint=hint)


def _sizes(shape: Shape) -> Shape:
    """The shape without its layout; a bound of a dimension counts as its size."""
    bare = shape.bare
    return array(bare.element_type, bare.dims) if bare.dynamic else bare


def printable(name: str) -> str:
    """The name, or another one where XLA could not read it: names of element types get an underscore."""
    return f"{name}_" if name in types.NAMES else name


def _example(attr: Attr) -> str:
    """What a value of the attribute looks like."""
    return attr.choices[0] if attr.choices else attr.kind.value.partition(" → ")[0]
