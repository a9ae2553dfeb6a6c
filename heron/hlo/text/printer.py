"""Printer: modules, computations and instructions as XLA prints them, byte for byte by default.

Computations come callees first, instructions in the post-order XLA prints (or as scheduled), so the text does not
depend on the order in which passes inserted things.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heron.hlo.op import Op
from heron.hlo.text import async_sugar, common, header
from heron.hlo.text.attributes import PRINT
from heron.hlo.text.literals import print_literal
from heron.hlo.types import PRED

if TYPE_CHECKING:
    from heron.hlo.computation import Computation
    from heron.hlo.instruction import Instruction
    from heron.hlo.module import Module
    from heron.hlo.shape import Shape

#: a comment with the index stands before every fifth operand
INDEX_INTERVAL = 5


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """What to show. The default is XLA's long form with constants in full, which parses back to an equal module."""

    percent: bool = True  # %name
    signatures: bool = True  # (a: f32[2]) -> f32[2] after a computation's name
    operand_shapes: bool = False  # add(f32[2]{0} %a, ...)
    layouts: bool = True
    metadata: bool = True
    backend_config: bool = True
    elide_large_constants: bool = False  # {...} for more than 10 elements
    canonical_names: bool = False  # names are numbers in print order: equal programs print the same text

    @staticmethod
    def short() -> PrintOptions:
        """Without percent signs and signatures."""
        return PrintOptions(percent=False, signatures=False)

    @staticmethod
    def canonical() -> PrintOptions:
        """Independent of names and of where the program came from."""
        return PrintOptions(percent=False, signatures=False, metadata=False, canonical_names=True)


DEFAULT = PrintOptions()
_BRIEF = PrintOptions(elide_large_constants=True)


def print_module(module: Module, options: PrintOptions = DEFAULT) -> str:
    """The text of a module."""
    return Printer(options).module(module)


def print_computation(c: Computation, options: PrintOptions = DEFAULT) -> str:
    """The text of a computation, without those it calls."""
    return Printer(options).computation(c)


def print_instruction(i: Instruction, options: PrintOptions = _BRIEF) -> str:
    """The text of an instruction on one line; large constants are left out by default."""
    return Printer(options).instruction(i)


# -- order -----------------------------------------------------------------------------------------------------------
def print_order(c: Computation) -> list[Instruction]:
    """Post-order from the instructions nobody uses: control predecessors, then operands from first to last."""
    done: set[Instruction] = set()
    order: list[Instruction] = []
    for sink in c.instructions:
        if sink.users or sink in done:
            continue
        stack: list[Instruction | None] = [sink]
        while stack:
            i = stack.pop()
            if i is None:  # what follows has all its operands out
                i = stack.pop()
                assert i is not None
                if i not in done:
                    done.add(i)
                    order.append(i)
                continue
            if i in done:
                continue
            waiting = [o for o in reversed(i.operands) if o not in done]
            if i.control_predecessors:
                waiting += [o for o in i.control_predecessors if o not in done]
            if not waiting:
                done.add(i)
                order.append(i)
                continue
            stack += (i, None)
            stack += waiting
    return order


def computation_order(module: Module) -> list[Computation]:
    """Callees first, in the order in which the callers' instructions stand."""
    called = {callee for c in module.computations for i in c.instructions for callee in i.called}
    done: set[Computation] = set()
    order: list[Computation] = []

    def visit(c: Computation) -> None:
        stack = [(c, iter(c.instructions))]
        while stack:
            current, rest = stack[-1]
            fresh: list[Computation] = []
            for i in rest:
                fresh = [callee for callee in _called(i) if callee not in done]
                if fresh:
                    break
            if not fresh:
                stack.pop()
                order.append(current)
                continue
            done.update(fresh)
            stack += [(callee, iter(callee.instructions)) for callee in reversed(fresh)]

    for c in module.computations:
        if c not in called:
            done.add(c)
            visit(c)
    order += [c for c in module.computations if c not in done]  # reached by nothing but a cycle
    return order


def _called(i: Instruction) -> list[Computation]:
    """Called computations in XLA's order, each once: the body of a loop before its condition."""
    called = i.called
    if len(called) < 2:
        return called
    return list(dict.fromkeys(reversed(called) if i.opcode == "while" else called))


# -- attributes by op ------------------------------------------------------------------------------------------------
_Plan = list[tuple[str, Callable[[Any, "Printer"], str], Any, bool]]
_PLANS: dict[Op, _Plan] = {}
_LATE = ("result_accuracy",)  # printed among what any instruction may carry
_ASYNC = frozenset(("async-start", "async-update", "async-done"))
_INSIDE = {"parameter": "number", "constant": "literal"}  # printed between the parentheses


def _plan(op: Op) -> _Plan:
    found = _PLANS.get(op)
    if found is None:
        found = _PLANS[op] = [
            (name, PRINT[spec.kind], spec.default, spec.shown or spec.required)
            for name, spec in op.attributes.items()
            if name not in _LATE and name != _INSIDE.get(op.name)
        ]
    return found


class Printer:
    """One run; remembers canonical names."""

    def __init__(self, options: PrintOptions) -> None:
        self.options = options
        self._sign = "%" if options.percent else ""
        self._names: dict[Instruction, str] = {}
        self._computations: dict[Computation, str] = {}

    # -- names -------------------------------------------------------------------------------------------------------
    def name(self, i: Instruction) -> str:
        """An instruction's name as printed."""
        if not self.options.canonical_names:
            return self._sign + i.name
        return self._sign + self._names.setdefault(i, f"i{len(self._names)}")

    def computation_name(self, c: Computation) -> str:
        """A computation's name as printed."""
        if not self.options.canonical_names:
            return self._sign + c.name
        return self._sign + self._computations.setdefault(c, f"c{len(self._computations)}")

    def shape(self, shape: Shape) -> str:
        """A shape as printed."""
        return shape.text if self.options.layouts else shape.bare.text

    # -- module and computations -------------------------------------------------------------------------------------
    def module(self, module: Module) -> str:
        """Header, tables of source places, computations."""
        fields = dict(module.header)
        fields["is_scheduled"] = module.schedule is not None
        fields["entry_computation_layout"] = module.entry_layout or _own_layout(module.entry)
        name = "module" if self.options.canonical_names else module.name
        parts = [f"HloModule {name}{header.print_header(fields)}"]
        if "stack_frames" in fields and self.options.metadata:
            parts.append(header.print_stack_frames(fields["stack_frames"]))
        parts.append("\n\n")
        inlined = _inlined(module)
        for c in computation_order(module):
            if c in inlined:
                continue
            scheduled = module.schedule.get(c) if module.schedule is not None else None
            parts.append("ENTRY " if c is module.entry else "")
            parts.append(self.computation(c, scheduled))
            parts.append("\n\n")
        return "".join(parts)

    def computation(self, c: Computation, order: list[Instruction] | None = None) -> str:
        """Name, signature, instructions in braces."""
        head = self.computation_name(c)
        if self.options.signatures:
            inner = ", ".join(f"{self.name(p).removeprefix('%')}: {p.shape.bare.text}" for p in c.parameters)
            head += f" ({inner}) -> {c.root.shape.bare.text}"
        lines = [head + " {"]
        root = c.root
        for i in print_order(c) if order is None else order:
            lines.append(("  ROOT " if i is root else "  ") + self.instruction(i))
        thread = c.extras.get("execution_thread")
        lines.append("}" if thread is None else f'}}, execution_thread="{thread}"')
        return "\n".join(lines)

    # -- instructions ------------------------------------------------------------------------------------------------
    def instruction(self, i: Instruction) -> str:
        """One line."""
        if self.options.canonical_names:
            self.name(i)
        shape = i.shape
        shown = "" if shape is None else (shape.text if self.options.layouts else self.shape(shape)) + " "
        opcode = i.opcode
        if opcode in _ASYNC and (inner := async_sugar.wrapped(i)) is not None:
            opcode = inner.opcode + opcode.removeprefix("async")
        text = f"{self.name(i)} = {shown}{opcode}({self._operands(i)})"
        if i.attrs or i.extras or i.metadata is not None or i.control_predecessors:
            text += self._attributes(i)
        return text

    def _operands(self, i: Instruction) -> str:
        if i.opcode == "parameter":
            return str(i.attrs.get("number", "?"))
        if i.opcode == "constant":
            literal = i.attrs.get("literal")
            return "?" if literal is None else print_literal(literal, self.options.elide_large_constants)
        operands = i.operands
        if self.options.operand_shapes:
            names = [f"{self.shape(o.shape)} {self.name(o)}" for o in operands]
        elif self.options.canonical_names:
            names = [self.name(o) for o in operands]
        else:
            sign = self._sign
            names = [sign + o.name for o in operands]
        for n in range(INDEX_INTERVAL, len(names), INDEX_INTERVAL):
            names[n] = f"/*index={n}*/{names[n]}"
        return ", ".join(names)

    def _attributes(self, i: Instruction) -> str:
        parts: list[str] = []
        extras, attrs = i.extras, i.attrs
        if "parameter_replication" in extras:
            self._extra(extras, "parameter_replication", parts)
        plan = _plan(i.op)
        if i.opcode == "async-start" and (inner := async_sugar.wrapped(i)) is not None:
            plan = [*plan[:1], *_plan(inner.op)]
            attrs = {async_sugar.THREAD: i.async_execution_thread, **inner.attrs}
        for name, show, default, shown in plan:
            value = attrs.get(name, default)
            if value is None or (value == default and not shown):
                continue
            if name == "branch_computations" and len(value) == 2 and _chooses_by_pred(i):
                parts.append("true_computation=" + self.computation_name(value[0]))
                parts.append("false_computation=" + self.computation_name(value[1]))
                continue
            parts.append(f"{name}={show(value, self)}")
        if extras or i.control_predecessors or i.metadata is not None or "result_accuracy" in attrs:
            self._common(i, parts)
        return ", " + ", ".join(parts) if parts else ""

    def _common(self, i: Instruction, parts: list[str]) -> None:
        extras = i.extras
        self._extra(extras, "sharding", parts)
        self._extra(extras, "frontend_attributes", parts)
        if i.control_predecessors:
            names = ", ".join(map(self.name, i.control_predecessors))
            parts.append(f"control-predecessors={{{names}}}")
        self._extra(extras, "statistics", parts)
        self._extra({**extras, **i.attrs}, "result_accuracy", parts)
        if self.options.metadata:
            self._extra(extras, "origin", parts)
            if i.metadata is not None and (text := common.print_metadata(i.metadata)):
                parts.append("metadata=" + text)
        if self.options.backend_config and extras.get("backend_config"):
            self._extra(extras, "backend_config", parts)

    @staticmethod
    def _extra(extras: dict[str, Any], name: str, parts: list[str]) -> None:
        value = extras.get(name)
        if value is not None:
            parts.append(f"{name}={common.PRINT[name](value)}")


def _inlined(module: Module) -> set[Computation]:
    """Computations of a single op that are printed in the place of their call."""
    found = {i.attrs["calls"] for i in module.instructions() if i.opcode == "async-start" and async_sugar.wrapped(i)}
    if found:
        found -= {k for i in module.instructions() if i.opcode != "async-start" for k in i.called}
    return found


def _own_layout(entry: Computation) -> header.EntryLayout:
    return tuple(p.shape for p in entry.parameters), entry.root.shape


def _chooses_by_pred(i: Instruction) -> bool:
    return bool(i.operands) and i.operands[0].shape.element_type is PRED
