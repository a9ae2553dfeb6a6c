"""Printer: modules, computations and instructions as XLA prints them, byte for byte by default.

Computations come callees first, instructions in the post-order XLA prints (or as scheduled), so the text does not
depend on the order in which passes inserted things.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from heron.hlo.ir.metadata import print_metadata
from heron.hlo.ir.op import AttrKind, Op, Trait
from heron.hlo.ir.order import computation_order, insertion_order, print_order
from heron.hlo.ir.types import PRED
from heron.hlo.text import async_sugar, carried, common, groups, header
from heron.hlo.text.attributes import PRINT
from heron.hlo.text.literal_printer import print_digest, print_essential, print_literal
from heron.hlo.text.literals import is_long
from heron.hlo.text.options import PrintOptions

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.module import Module
    from heron.hlo.ir.shape import Shape

#: a comment with the index stands before every fifth operand
INDEX_INTERVAL = 5
#: operands shown when they are compact
SHOWN_OPERANDS = 4

DEFAULT = PrintOptions()
_BRIEF = PrintOptions(elide_large_constants=True)
_IDENTITY = PrintOptions(digest_constants=True)


def print_module(module: Module, options: PrintOptions = DEFAULT) -> str:
    """The text of a module."""
    return Printer(options).module(module)


def print_computation(c: Computation, options: PrintOptions = DEFAULT) -> str:
    """The text of a computation, without those it calls unless `options.calls` is ``body``."""
    return Printer(options).computation(c)


def print_instruction(i: Instruction, options: PrintOptions = _BRIEF) -> str:
    """The text of an instruction on one line; large constants are left out by default."""
    return Printer(options).instruction(i)


def identity(module: Module) -> str:
    """The text of a module with digests of the bytes of its constants: equal for two modules that are equal to the
    last bit and name. Costs no more than one pass over these bytes."""
    return print_module(module, _IDENTITY)


# -- attributes by op ------------------------------------------------------------------------------------------------
_Plan = list[tuple[str, AttrKind, Callable[[Any, "Printer"], str], Any, bool]]
_PLANS: dict[Op, _Plan] = {}
_LATE = ("result_accuracy",)  # printed among what any instruction may carry
#: annotations of the op that print before those of the async-start that runs it
_INNER = ("sharding", "frontend_attributes", "statistics", "origin")
_INSIDE = {"parameter": "number", "constant": "literal"}  # printed between the parentheses
#: what a body in place is called where that is not the attribute's name
_NAMES_OF_BODIES = {"reduce-scatter": "calls", "scan": "calls"}
_CALLS = (AttrKind.COMPUTATION, AttrKind.COMPUTATIONS)


def plan_of(op: Op) -> _Plan:
    """The attributes that an op declares and that print behind its operands."""
    found = _PLANS.get(op)
    if found is None:
        found = _PLANS[op] = [
            (name, spec.kind, PRINT[spec.kind], spec.default, spec.shown or spec.required)
            for name, spec in op.attributes.items()
            if name not in _LATE and name != _INSIDE.get(op.name)
        ]
    return found


class Printer:
    """One run; remembers canonical names and how deep it is."""

    def __init__(self, options: PrintOptions) -> None:
        self.options = options
        self._sign = "%" if options.percent else ""
        self._plain = options.ids and not options.canonical_names  # names print as they are
        self._nested = options.nested
        self._indent = options.indent
        self._numbers: dict[Instruction, int] = {}  # of the computation that is being printed

    # -- names -------------------------------------------------------------------------------------------------------
    def name(self, i: Instruction) -> str:
        """An instruction's name as printed."""
        if self._plain:
            return self._sign + i.name
        if self.options.canonical_names and self._nested:
            return f"tmp_{self._numbers.setdefault(i, len(self._numbers))}"
        return self._own_name(i)

    def _own_name(self, i: Instruction) -> str:
        return self._sign + self._without_id(i.name)

    def computation_name(self, c: Computation) -> str:
        """A computation's name as printed."""
        return self._sign + self._without_id(c.name)

    def _without_id(self, name: str) -> str:
        return name if self.options.ids else name.partition(".")[0]

    def shape(self, shape: Shape) -> str:
        """A shape as printed."""
        return shape.text if self.options.layouts else shape.bare.text

    # -- module and computations -------------------------------------------------------------------------------------
    def module(self, module: Module) -> str:
        """Header, tables of source places, computations."""
        options = self.options
        fields = dict(module.header)
        fields["is_scheduled"] = module.schedule is not None
        fields["entry_computation_layout"] = module.entry_layout or _own_layout(module.entry)
        tab = "  " * self._indent
        parts = [f"{tab}HloModule {module.name if options.ids else ''}{header.print_header(fields)}"]
        if "stack_frames" in fields and options.metadata:
            parts.append(header.print_stack_frames(fields["stack_frames"]))
        parts.append("\n\n")
        inlined = _inlined(module) if options.async_sugar else set()
        for c in insertion_order(module) if options.canonical_order else computation_order(module):
            if c in inlined:
                continue
            scheduled = module.schedule.get(c) if module.schedule is not None else None
            text = self.computation(c, scheduled)
            parts += (tab, "ENTRY ", text[len(tab) :]) if c is module.entry else (text,)
            parts.append("\n\n")
        return "".join(parts)

    def computation(self, c: Computation, order: Sequence[Instruction] | None = None) -> str:
        """Name, signature, instructions in braces."""
        options = self.options
        tab = "  " * self._indent
        head = tab
        if not self._nested:
            head += self._sign
            if options.ids:
                head += c.name + " "
        if options.signatures:
            inner = ", ".join(f"{self._without_id(p.name)}: {p.shape.bare.text}" for p in c.parameters)
            head += f"({inner}) -> {c.root.shape.bare.text} "
        lines = [head + "{"]
        root = c.root
        saved = self._nested, self._numbers
        self._nested, self._numbers = True, {}
        self._indent += 1
        for i in print_order(c) if order is None else order:
            lines.append(f"{tab}  ROOT {self.instruction(i)}" if i is root else f"{tab}  {self.instruction(i)}")
        self._indent -= 1
        self._nested, self._numbers = saved
        thread = c.extras.get("execution_thread")
        end = tab + "}"
        if thread is not None and options.ids:
            end += f', execution_thread="{thread}"'
        if options.name_after_brace and len(c) > SHOWN_OPERANDS:
            end += f" // {c.name}"
        lines.append(end)
        return "\n".join(lines)

    # -- instructions ------------------------------------------------------------------------------------------------
    def instruction(self, i: Instruction) -> str:
        """One line, unless called computations are printed in place."""
        options, op = self.options, i.op
        opcode, is_async = op.name, Trait.ASYNC in op.traits
        if is_async and options.async_sugar and (inner := async_sugar.wrapped(i)) is not None:
            opcode = inner.opcode + opcode.removeprefix("async")
        name = f"{self.name(i)} = " if self._nested or not options.canonical_names else ""
        shape = i.shape if options.result_shapes else None
        result = "" if shape is None else f"{(shape if options.layouts else shape.bare).text} "
        text = f"{name}{result}{opcode}({self._operands(i)})"
        declared = (i.attrs or op.shows) and (plan_of(op) or is_async or "result_accuracy" in i.attrs)
        if declared or i.extras or i.metadata is not None or i.control_predecessors:
            text += self._attributes(i)
        return text

    def _operands(self, i: Instruction) -> str:
        options, operands = self.options, i.operands
        if not operands and i.opcode == "parameter":
            return str(i.attrs.get("number", "?")) if options.parameter_numbers else ""
        if not operands and i.opcode == "constant":
            return self._constant(i)
        left = 0
        if options.compact_operands and len(operands) > SHOWN_OPERANDS:
            left = len(operands) - SHOWN_OPERANDS
            operands = operands[:SHOWN_OPERANDS]
        named = options.operand_names or (options.canonical_names and self._nested)
        if self._plain and not options.operand_shapes and named:
            sign = self._sign
            names = [sign + o.name for o in operands]
        else:
            names = [self._operand(o, named) for o in operands]
        if options.index_comments:
            for n in range(INDEX_INTERVAL, len(names), INDEX_INTERVAL):
                names[n] = f"/*index={n}*/{names[n]}"
        return ", ".join(names) + (f", ...(+{left})" if left else "")

    def _operand(self, operand: Instruction, named: bool) -> str:
        parts = [self.shape(operand.shape)] if self.options.operand_shapes else []
        return " ".join([*parts, self.name(operand)] if named else parts)

    def _constant(self, i: Instruction) -> str:
        literal = i.attrs.get("literal")
        if literal is None:
            return "?"
        if self.options.essential_constants:
            return print_essential(literal)
        if self.options.digest_constants and is_long(literal.shape):
            return print_digest(literal)
        return print_literal(literal, self.options.elide_large_constants)

    # -- attributes --------------------------------------------------------------------------------------------------
    def _attributes(self, i: Instruction) -> str:
        options = self.options
        parts: list[str] = []
        extras, attrs = i.extras, i.attrs
        if "parameter_replication" in extras and options.ids and options.attributes:
            self._extra(extras, "parameter_replication", parts)
        if Trait.ASYNC in i.op.traits:
            extras = self._async(i, parts)
        elif attrs or i.op.shows:
            self._declared(i, plan_of(i.op), attrs, parts)
        if extras or i.control_predecessors or i.metadata is not None or "result_accuracy" in attrs:
            self._common(i, extras, parts)
        return ", " + ", ".join(parts) if parts else ""

    def _declared(self, i: Instruction, plan: _Plan, attrs: dict[str, Any], parts: list[str]) -> None:
        """The attributes that the op of that plan declares."""
        options = self.options
        for name, kind, show, default, shown in plan:
            value = attrs.get(name, default)
            if value is None or (value == default and not shown):
                continue
            if kind in _CALLS:
                self._calls(i, name, kind, value, parts)
            elif not options.attributes:
                continue
            elif name in ("infeed_config", "outfeed_config") and not options.feed_config:
                continue
            elif kind is AttrKind.REPLICA_GROUPS and options.full_replica_groups:
                parts.append(f"{name}={groups.full(value)}")
            else:
                parts.append(f"{name}={show(value, self)}")

    def _async(self, i: Instruction, parts: list[str]) -> dict[str, Any]:
        """An async-start says what it runs, in its own place or as a body; what follows it need not repeat that.

        Gives what is annotated, and still to be printed.
        """
        if i.opcode != "async-start":
            return i.extras
        plan, (thread, aliasing, _) = plan_of(i.op), plan_of(i.op)
        inner = async_sugar.wrapped(i) if self.options.async_sugar else None
        if inner is None:
            self._declared(i, plan, i.attrs, parts)
            return i.extras
        self._declared(i, [thread], i.attrs, parts)
        self._declared(i, plan_of(inner.op), inner.attrs, parts)
        own = {**inner.extras, **i.extras}
        self._common(inner, {n: own.pop(n) for n in _INNER if n not in i.extras and n in own}, parts, inner=True)
        self._declared(i, [aliasing], i.attrs, parts)
        if self.options.calls == "body":
            self._calls(i, "calls", AttrKind.COMPUTATION, i.calls, parts)
        return own

    def _calls(self, i: Instruction, name: str, kind: AttrKind, value: Any, parts: list[str]) -> None:
        """Called computations, by name or in place."""
        if self.options.calls == "off":
            return
        if name == "branch_computations" and len(value) == 2 and _chooses_by_pred(i):
            self._calls(i, "true_computation", AttrKind.COMPUTATION, value[0], parts)
            self._calls(i, "false_computation", AttrKind.COMPUTATION, value[1], parts)
        elif self.options.calls == "name":
            parts.append(f"{name}={PRINT[kind](value, self)}")
        elif kind is AttrKind.COMPUTATION:
            parts.append(f"{_NAMES_OF_BODIES.get(_running(i), name)}=\n{self._body(value)}")
        else:
            bodies = ",\n".join(map(self._body, value))
            parts.append(f"{name}={{\n{bodies}\n}}")

    def _body(self, c: Computation) -> str:
        saved, self._nested = self._nested, True
        text = self.computation(c)
        self._nested = saved
        return text

    def _common(self, i: Instruction, extras: dict[str, Any], parts: list[str], inner: bool = False) -> None:
        """The common annotations; of the op `inner` to an asynchronous one without its metadata."""
        options = self.options
        sharding = extras.get("sharding")
        if sharding is not None:
            kept = options.metadata or "metadata=" not in sharding
            parts.append(f"sharding={sharding if kept else carried.without_metadata(sharding)}")
        if options.frontend_attributes:
            self._extra(extras, "frontend_attributes", parts)
        if i.control_predecessors and options.control_predecessors:
            names = ", ".join(map(self._own_name, i.control_predecessors))
            parts.append(f"control-predecessors={{{names}}}")
        self._extra(extras, "statistics", parts)
        self._extra(i.attrs if "result_accuracy" in i.attrs else extras, "result_accuracy", parts)
        if options.origin:
            self._extra(extras, "origin", parts)
        if options.metadata and i.metadata is not None and not inner:
            text = print_metadata(i.metadata, options.op_names_only)
            if text:
                parts.append("metadata=" + text)
        if options.backend_config and extras.get("backend_config"):
            self._extra(extras, "backend_config", parts)

    @staticmethod
    def _extra(extras: dict[str, Any], name: str, parts: list[str]) -> None:
        value = extras.get(name)
        if value is not None:
            parts.append(f"{name}={common.PRINT[name](value)}")


def _inlined(module: Module) -> set[Computation]:
    """Computations of a single op that are printed in the place of their call."""
    found = {i.calls for i in module.instructions() if i.opcode == "async-start" and async_sugar.wrapped(i)}
    if found:
        found -= {k for i in module.instructions() if i.opcode != "async-start" for k in i.called}
    return found


def _running(i: Instruction) -> str:
    """The op that an instruction shows the attributes of."""
    inner = async_sugar.wrapped(i) if i.opcode == "async-start" else None
    return i.opcode if inner is None else inner.opcode


def _own_layout(entry: Computation) -> header.EntryLayout:
    return tuple(p.shape for p in entry.parameters), entry.root.shape


def _chooses_by_pred(i: Instruction) -> bool:
    return bool(i.operands) and i.operands[0].shape.element_type is PRED
