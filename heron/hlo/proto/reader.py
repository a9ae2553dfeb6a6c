"""An HloModuleProto as a Module. Any bytes give a module or a HeronError; memory stays in proportion to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from google.protobuf.message import DecodeError

import heron.hlo.ops  # noqa: F401  (fills the registry)
from heron.errors import HeronError
from heron.hlo.ir import op as ops
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction, operand_count_text
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import AttrKind, Op
from heron.hlo.proto import enums
from heron.hlo.proto.annotations import CARRIED, AnnotationReader, read_accuracy, unread_fields
from heron.hlo.proto.field_kinds import Read
from heron.hlo.proto.fields import field_of
from heron.hlo.proto.metadata import read_metadata, read_stack_frames
from heron.hlo.proto.schema import MESSAGES, Message
from heron.hlo.proto.shapes import ShapeReader
from heron.hlo.proto.writer import CALLS
from heron.hlo.text.cursor import Cursor
from heron.hlo.text.header import read_header
from heron.hlo.text.lexer import Source

_NO_NAME = re.compile(r"[^A-Za-z0-9_.\-]")

#: attribute, default, whether the default is kept, whether it must be there, reader
_Plan = list[tuple[str, Any, bool, bool, Read]]


def parse_message(kind: str, data: bytes) -> Message:
    """A message of the bytes. Raises PROTO001 when they are none."""
    try:
        return MESSAGES[kind].FromString(data)
    except (DecodeError, ValueError, TypeError, RuntimeError) as error:
        why = f"{len(data)} bytes; {error}"
        raise HeronError("PROTO001", f"this is not a valid {kind}", why=why, hint="is the file cut off?") from None


def from_message(proto: Message, filename: str = "<proto>") -> Module:
    """The module of an HloModuleProto, which is taken apart.

    Raises PROTO002 (numbers that lead nowhere, wrong order), PROTO003 (values nobody knows), PROTO004 (literals),
    PROTO005 (what heron has no place for), HLO003 and HLO004 (ops and their operands).
    """
    return _Reader(proto, filename).module()


def _broken(what: str, where: str | None = None) -> HeronError:
    return HeronError("PROTO002", what, where=where)


class _Reader:
    def __init__(self, proto: Message, filename: str) -> None:
        self._proto = proto
        self._shapes = ShapeReader()
        self._annotations = AnnotationReader()
        self._plans: dict[Op, _Plan] = {}
        self._computations: dict[int, Computation] = {}
        self._instructions: dict[int, Instruction] = {}
        self._payloads: list[bytes] = list(proto.payloads)
        self._module = Module(_name(proto.name, "module"))
        self._module.filename = filename

    def module(self) -> Module:
        proto, module = self._proto, self._module
        for c in proto.computations:
            if c.id in self._computations:
                raise _broken(f"two computations have the number {c.id}", c.name)
            self._computations[c.id] = self._computation(c)
        for _, c in sorted(self._computations.items()):
            module.add_computation(c)
        entry = self._computations.get(proto.entry_computation_id)
        if entry is None:
            raise _broken(f"the entry computation, number {proto.entry_computation_id}, is missing", module.name)
        module.entry = entry
        self._header()
        return module

    # -- computations ------------------------------------------------------------------------------------------------
    def _computation(self, proto: Message) -> Computation:
        c = Computation(_name(proto.name, "computation"))
        if proto.execution_thread:
            c.extras["execution_thread"] = proto.execution_thread
        if unread := unread_fields(proto):
            c.extras[CARRIED] = unread
        found: dict[int, Instruction] = {}
        for p in proto.instructions:
            number = p.id
            if number in found:
                raise _broken(f"two instructions have the number {number}", f"{c.name}: {p.name}")
            found[number] = self._instruction(p, found, c)
        if proto.root_id not in found:
            raise _broken(f"the root, number {proto.root_id}, is missing", c.name)
        c.root = found[proto.root_id]
        for _, i in sorted(found.items()):
            i.parent = c
            c.attach(i)
        self._instructions.update(found)
        return c

    def _instruction(self, p: Message, known: dict[int, Instruction], c: Computation) -> Instruction:
        name = _name(p.name, "instruction")
        try:
            op = ops.get(p.opcode)
        except HeronError as error:
            raise error.located(f"{c.name}: {name}") from None
        try:
            operands = [known[n] for n in p.operand_ids]
            before = [known[n] for n in p.control_predecessor_ids] if p.control_predecessor_ids else ()
        except KeyError as missing:
            raise _broken(f"'{name}' needs instruction {missing}, which is not defined before it", c.name) from None
        count = len(operands)
        if count < op.min_operands or (op.max_operands is not None and count > op.max_operands):
            what = f"{op.name} takes {operand_count_text(op)}, {count} given"
            raise HeronError("HLO004", what, where=f"{c.name}: {name}")
        try:
            attrs = self._attributes(op, p, operands)
            if p.called_computation_ids or _needs_calls(op):
                self._calls(op, p, attrs)
            extras = self._annotations.read(p, self._payloads)
            if p.HasField("result_accuracy") and "result_accuracy" not in op.attributes:
                accuracy = read_accuracy(p.result_accuracy)
                extras.update({} if accuracy is None else {"result_accuracy": accuracy})
            metadata = read_metadata(p.metadata) if p.HasField("metadata") else None
            i = Instruction(op, operands, self._shapes.read(p.shape), attrs, name, extras, metadata)
        except HeronError as error:
            raise error.located(f"{c.name}: {name}") from None
        for other in before:
            i.add_control_predecessor(other)
        return i

    def _attributes(self, op: Op, p: Message, operands: Sequence[Instruction]) -> dict[str, Any]:
        plan = self._plans.get(op)
        if plan is None:
            plan = self._plans[op] = _plan(op)
        attrs: dict[str, Any] = {}
        for name, default, kept, required, read in plan:
            value = read(p, self._shapes, operands)
            if value is not None:
                if kept or value != default:
                    attrs[name] = value
            elif required:
                raise HeronError("PROTO002", f"{op.name} needs the attribute '{name}'")
        return attrs

    def _calls(self, op: Op, p: Message, attrs: dict[str, Any]) -> None:
        """Give each attribute that names computations its share of those called."""
        try:
            called = [self._computations[n] for n in p.called_computation_ids]
        except KeyError as missing:
            raise _broken(f"computation {missing} is called but does not stand before its caller") from None
        names = [(n, spec) for n, spec in op.attributes.items() if spec.kind in CALLS]
        if op.name == "while":
            called.reverse()
        for name, spec in names:
            if spec.kind is AttrKind.COMPUTATIONS:
                attrs[name], called = tuple(called), []
            elif called:
                attrs[name] = called.pop(0)
            if spec.required and not attrs.get(name):
                raise _broken(f"{op.name} needs the attribute '{name}', a computation to call")
        if called:
            raise _broken(f"{op.name} calls {len(called)} computations too many")

    # -- the header --------------------------------------------------------------------------------------------------
    def _header(self) -> None:
        proto, module = self._proto, self._module
        header = module.header
        if proto.header_text:
            cursor = Cursor(Source(proto.header_text, "header"))
            header.update(read_header(cursor))
        if proto.HasField("host_program_shape"):
            program = proto.host_program_shape
            module.entry_layout = tuple(map(self._shapes.read, program.parameters)), self._shapes.read(program.result)
        aliases = [
            (
                tuple(e.output_shape_index),
                e.parameter_number,
                tuple(e.parameter_shape_index),
                enums.word(enums.ALIAS, e.kind) or enums.ALIAS[1],
            )
            for e in proto.input_output_alias.entries
        ]
        if aliases:
            header["input_output_alias"] = tuple(aliases)
        if donors := proto.buffer_donor.entries:
            header["buffer_donor"] = tuple((d.parameter_number, tuple(d.parameter_shape_index)) for d in donors)
        if found := proto.frontend_attributes.map:
            header["frontend_attributes"] = {e.key: e.value for e in found}
        frames = proto.stack_frame_index
        if frames.file_names or frames.stack_frames:
            header["stack_frames"] = read_stack_frames(frames)
        module.cross_program_prefetches = tuple(
            (c.parameter, tuple(c.index), c.offset) for c in proto.cross_program_prefetches
        )
        if shardings := proto.spmd_parameters_shardings:
            module.spmd_parameter_shardings = tuple(map(self._annotations.sharding, shardings))
        if proto.HasField("spmd_output_sharding"):
            module.spmd_output_sharding = self._annotations.sharding(proto.spmd_output_sharding)
        if proto.HasField("schedule"):
            self._schedule()
        for field in proto.DESCRIPTOR.fields:
            proto.ClearField(field.name)
        module.carried = proto.SerializeToString()  # fields we do not read

    def _schedule(self) -> None:
        schedule: dict[Computation, list[Instruction]] = {}
        for entry in self._proto.schedule.sequences:
            c = self._computations.get(entry.key)
            if c is None:
                raise _broken(f"computation {entry.key} is scheduled but missing")
            try:
                order = [self._instructions[n] for n in entry.value.instruction_ids]
            except KeyError as missing:
                raise _broken(f"instruction {missing} is scheduled but missing", c.name) from None
            if len(order) != len(c) or set(order) != set(c.instructions):
                raise _broken(f"the schedule of '{c.name}' is not its instructions, each once")
            schedule[c] = order
        self._module.schedule = schedule


def _needs_calls(op: Op) -> bool:
    return any(spec.required and spec.kind in CALLS for spec in op.attributes.values())


def _plan(op: Op) -> _Plan:
    plan: _Plan = []
    for name, spec in op.attributes.items():
        field = field_of(op, name)
        if field is not None and spec.kind not in CALLS:
            plan.append((name, spec.default, spec.required or spec.shown, spec.required, field.read))
    return plan


def _name(name: str, otherwise: str) -> str:
    """The name in the characters that text allows."""
    if not name:
        return otherwise
    if not _NO_NAME.search(name) and not name[0].isdigit():
        return name
    name = _NO_NAME.sub("_", name)
    return name if name[0].isalpha() or name[0] == "_" else "_" + name
