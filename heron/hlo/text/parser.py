"""Parser: HLO text to a Module. XLA's long form and its short ones, as XLA prints them and as people write them.

The ops' declarations drive it: an instruction's attributes are read by their `AttrKind`. As in XLA, computations and
operands must stand before their use, a computation without ROOT returns its last instruction, and without ENTRY the
last computation is the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

import numpy as np

import heron.hlo.ops  # noqa: F401  (fills the registry)
from heron.errors import Span
from heron.hlo.ir import types
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.text import async_sugar, frames, header
from heron.hlo.text.header import NO_FRAMES
from heron.hlo.text.instructions import InstructionParser
from heron.hlo.text.lexer import END, WORD, Source
from heron.hlo.text.literals import NOWHERE
from heron.hlo.text.nearest import nearest
from heron.hlo.verifier import problems


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


class Parser(InstructionParser):
    """One run over one text."""

    # -- module --------------------------------------------------------------------------------------------------------
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
        c.root = c.attach(self.right_side(0, name, {}))
        self.places[c.root] = 0
        self.free = None
        if self.tokens[self.n] != END:
            self.unexpected("the end of the text", hint="several instructions belong into a computation: name { ... }")

    def _verify(self) -> None:
        for problem in problems(self.result):
            raise problem.error(self._place(problem.instruction))

    def _place(self, i: Instruction | None) -> Span | None:
        return None if i is None or i not in self.places else self.instruction_span(self.places[i])

    # -- computations --------------------------------------------------------------------------------------------------
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
            hint = "it is defined below: computations must precede their callers"
        self.fail("TXT008", f"unknown computation '{name[:60]}'", self.n - 1, hint=hint)

    def _defined_later(self, name: str) -> bool:
        """Whether the rest of the text has a computation of that name."""
        for n in range(self.n, len(self.tokens) - 1):
            if self.tokens[n].lstrip("%") == name and self.tokens[n + 1] in ("{", "("):
                return self.source.new_line_before(n) or self.tokens[n - 1] == "ENTRY"
        return False

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
        i = self.right_side(first, printable(bare), names)
        c.attach(i)
        self._define(bare, i, names, first)
        if root:
            c.root = i

    def _no_instruction(self) -> NoReturn:
        self.name("an instruction: name = shape op(operands)")
        self.unexpected("'=' after the instruction's name")

    def _define(self, bare: str, i: Instruction, names: dict[str, Instruction], n: int) -> None:
        """Names are found with and without the percent sign."""
        if bare in names:
            self.fail("TXT006", f"'{bare[:60]}' is defined twice in this computation", n)
        names[bare] = i
        self.places[i] = n


def printable(name: str) -> str:
    """The name, or another one where XLA could not read it: names of element types get an underscore."""
    return f"{name}_" if name in types.NAMES else name
