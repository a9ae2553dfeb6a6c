"""Rewrite rules, and the builder with which they create instructions.

A rule is a small function of an instruction and a `Builder`; it returns what may stand in the instruction's place, or
None. Its docstring is its law on the first line, then an example in the short form of
`heron.passes.framework.docs`, which is run as a test::

    @rule("subtract", operand=KNOWN)
    def subtract_zero(i, b):
        \"""x - 0 == x

        zero = f32[] constant(0)
        ROOT r = f32[] subtract(f32[] x, zero)
        ->
        ROOT x
        \"""
        match i.operands:
            case [x, zero] if is_splat(zero, 0.0):
                return x

A rule's class says when its law holds: ``exact`` for all values, bit for bit but for the payload of NaNs and the order
in which a `reduce` or `dot` adds up; ``reassociating`` when rounding or the sign of a zero may change; ``finite-only``
when it is wrong for infinities, NaNs or results that overflow on the way. `Options.math` decides which classes fire. A
law that XLA applies by default although it is not exact says so in its docstring. ``floats`` is the class for floats
and complex numbers where that is another than for integers and truth values. ``operand`` names the ops one of the
operands must be for the rule to be tried at all, which is what keeps hundreds of rules cheap.

``layouts`` says what a rule is worth once layouts count: ``free`` rules think of values only and are not tried then;
``kept`` rules give instructions in the layout of what they replace; ``only`` rules are about layouts and need them. A
theme's file sets it for all of its rules by a constant ``LAYOUTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from pathlib import PurePath
from typing import Any

from heron.analysis.values.splat import splat_value
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.op import REGISTRY
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.passes.rewriting import building
from heron.records import dataclass

Apply = Callable[[Instruction, "Builder"], Instruction | None]

#: stands for every elementwise op in a rule's opcodes
ELEMENTWISE = "elementwise"
#: what an operand with one known value for all its elements can be; such rules are tried only when it is known
KNOWN = ("constant", "broadcast", "reshape")


@dataclass(frozen=True, slots=True)
class Rule:
    """A registered rule. `where` is its source line, as ``file.py:12``."""

    name: str
    opcodes: tuple[str, ...]
    operand: tuple[str, ...]
    law: str
    math: str
    where: str
    apply: Apply
    layouts: str = "free"
    floats: str = "exact"

    def math_of(self, t: ElementType) -> str:
        """The rule's class for instructions of that type."""
        return self.floats if t.is_float or t.is_complex else self.math


RULES: list[Rule] = []


def rule(
    *opcodes: str,
    operand: str | tuple[str, ...] | frozenset[str] = (),
    math: str = "exact",
    floats: str = "",
    layouts: str = "",
    home: list[Rule] = RULES,
) -> Callable[[Apply], Apply]:
    """Decorator: register a function as the rule for instructions with one of these opcodes, among those of `home`."""
    if isinstance(operand, str):
        of = (operand,)
    elif isinstance(operand, tuple):
        of = operand  # KNOWN is asked for by identity
    else:
        of = tuple(sorted(operand))

    def add(function: Apply) -> Apply:
        code = function.__code__
        law = (function.__doc__ or "").split("\n", 1)[0].strip()
        where = f"{PurePath(code.co_filename).name}:{code.co_firstlineno}"
        kind = layouts or function.__globals__.get("LAYOUTS", "free")
        home.append(Rule(function.__name__, opcodes, of, law, math, where, function, kind, floats or math))
        return function

    return add


def allowed(rules: Iterable[Rule], allows: Callable[[str], bool]) -> list[Rule]:
    """The rules whose class may fire; if only the class for floats may not, those without floats."""
    return [
        r if allows(r.floats) else replace(r, apply=_without_floats(r.apply))
        for r in rules
        if allows(r.math) or allows(r.floats)
    ]


def _without_floats(apply: Apply) -> Apply:
    def guarded(i: Instruction, b: Builder) -> Instruction | None:
        t = i.shape.element_type
        return None if t.is_float or t.is_complex else apply(i, b)

    return guarded


@dataclass(slots=True)
class Entry:
    """The rules to try for one opcode: always, where an operand has one known value, and by the op of an operand."""

    always: tuple[Rule, ...] = ()
    known: tuple[Rule, ...] = ()
    by_operand: dict[str, tuple[Rule, ...]] = field(default_factory=dict)
    _met: dict[tuple[str, ...], tuple[Rule, ...]] = field(default_factory=dict)  # rules by the ops of operands

    def candidates(self, i: Instruction) -> tuple[Rule, ...]:
        """The rules worth trying on `i`."""
        opcodes = tuple(dict.fromkeys([o.opcode for o in i.operands]))
        found = self._met.get(opcodes)
        if found is None:
            by_operand = [r for opcode in opcodes for r in self.by_operand.get(opcode, ())]
            found = self.always + tuple(dict.fromkeys(by_operand))
            self._met[opcodes] = found
        if self.known:
            for o in i.operands:
                if o.opcode in KNOWN and splat_value(o) is not None:
                    return found + self.known
        return found


Table = dict[str, Entry]


def table(rules: Iterable[Rule], with_layouts: bool = False) -> Table:
    """The rules by the opcodes they are for: those that keep layouts or need them, or those that do not need them."""
    found: Table = {}
    elementwise = [op.name for op in REGISTRY.values() if op.is_elementwise]
    for r in rules:
        if r.layouts == ("free" if with_layouts else "only"):
            continue
        for opcode in r.opcodes:
            for name in elementwise if opcode == ELEMENTWISE else (opcode,):
                entry = found.setdefault(name, Entry())
                if not r.operand:
                    entry.always += (r,)
                elif r.operand is KNOWN:
                    entry.known += (r,)
                    continue
                for operand in r.operand:
                    entry.by_operand[operand] = (*entry.by_operand.get(operand, ()), r)
    return found


class Builder:
    """Makes the instructions a rule needs, in the computation being rewritten.

    ``at`` is the instruction they will stand for: they take over its metadata. ``created`` lists them for the driver.
    ``with_layouts`` tells whether layouts count.
    """

    def __init__(self, computation: Computation, with_layouts: bool = False) -> None:
        self.computation = computation
        self.with_layouts = with_layouts
        self.created: list[Instruction] = []
        self.at: Instruction | None = None

    def add(
        self, opcode: str, operands: Sequence[Instruction], shape: Shape | None = None, **attrs: Any
    ) -> Instruction:
        """A new instruction; its shape is inferred when not given."""
        made = self.computation.add(opcode, operands, shape, like=self.at, **attrs)
        self.created.append(made)
        return made

    def like(self, i: Instruction, operands: Sequence[Instruction], shape: Shape) -> Instruction:
        """The op of `i` with its attributes on other operands, giving `shape`."""
        return self.add(i.opcode, operands, shape, **i.attrs)

    def constant(self, value: Literal) -> Instruction:
        made = building.constant(self.computation, value, like=self.at)
        self.created.append(made)
        return made

    def splat(self, shape: Shape, value: object) -> Instruction:
        """An array of `shape` filled with `value`."""
        made = building.splat(self.computation, shape, value)
        if self.with_layouts:
            made.shape = shape
        self.created.append(made)
        return made

    def scalar(self, element_type: ElementType, value: object) -> Instruction:
        made = building.scalar(self.computation, element_type, value)
        self.created.append(made)
        return made

    def reshape(self, x: Instruction, dims: Sequence[int]) -> Instruction:
        """`x` with other dimensions; `x` itself when they are the same."""
        if x.shape.dims == tuple(dims):
            return x
        return self.add("reshape", [x], building.array(x.shape.element_type, dims))

    def transpose(self, x: Instruction, permutation: Sequence[int]) -> Instruction:
        """`x` with dimension ``permutation[d]`` in place d; `x` itself for the identity."""
        if list(permutation) == list(range(len(permutation))):
            return x
        shape = building.array(x.shape.element_type, [x.shape.dims[d] for d in permutation])
        return self.add("transpose", [x], shape, dimensions=tuple(permutation))

    def broadcast(self, x: Instruction, dims: Sequence[int], dimensions: Sequence[int]) -> Instruction:
        """`x` repeated into `dims`, its dimension n becoming ``dimensions[n]``; `x` itself when that is nothing."""
        if x.shape.dims == tuple(dims) and list(dimensions) == list(range(len(dims))):
            return x
        shape = building.array(x.shape.element_type, dims)
        return self.add("broadcast", [x], shape, dimensions=tuple(dimensions))

    def slice(self, x: Instruction, slices: Sequence[tuple[int, int, int]]) -> Instruction:
        """Part of `x`, (start, limit, stride) for each dimension; `x` itself when that is all of it."""
        dims = tuple([max(0, -(-(limit - start) // stride)) for start, limit, stride in slices])
        if x.shape.dims == dims:
            return x
        return self.add("slice", [x], building.array(x.shape.element_type, dims), slice=tuple(slices))

    def convert(self, x: Instruction, element_type: ElementType) -> Instruction:
        """`x` in another element type; `x` itself when it has that type."""
        if x.shape.element_type is element_type:
            return x
        return self.add("convert", [x], x.shape.with_type(element_type))

    def drop(self) -> None:
        """Take back what was made and not used: the rule thought better of it."""
        for made in reversed(self.created):
            if made.parent is self.computation and not made.users:
                self.computation.remove(made)
        self.created.clear()
