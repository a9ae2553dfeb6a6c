"""A Module as an HloModuleProto.

Numbers are XLA's: computations count by insertion, instructions within them, with the computation's number in the upper
half. So the order of insertion is kept, while the lists themselves are in dependency order, as readers want them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import EncodeError

from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import AttrKind, Op
from heron.hlo.ir.order import computation_order, print_order
from heron.hlo.proto import enums
from heron.hlo.proto.annotations import AnnotationWriter, merge_unread, write_frontend_attributes
from heron.hlo.proto.field_kinds import Write
from heron.hlo.proto.fields import field_of
from heron.hlo.proto.metadata import write_metadata, write_stack_frames
from heron.hlo.proto.schema import MESSAGES, Message
from heron.hlo.proto.shapes import ShapeWriter
from heron.hlo.text.header import print_header

CALLS = (AttrKind.COMPUTATION, AttrKind.COMPUTATIONS)
#: fields of the header that HloModuleProto has fields for
_OWN_FIELDS = ("input_output_alias", "buffer_donor", "frontend_attributes", "stack_frames")

#: attribute, default, writer, whether the default is written too
_Plan = list[tuple[str, Any, Write, bool]]


def to_message(module: Module) -> Message:
    """The HloModuleProto. Raises PROTO005 or PROTO006 for what it has no field for."""
    try:
        return _Writer(module).module()
    except KeyError as missing:
        why = f"{missing} is used but not in it"
        raise HeronError("PROTO005", f"module '{module.name}' is not whole", why=why) from None


def serialize(message: Message) -> bytes:
    """The bytes of a message. Raises PROTO005 when it is too deep or larger than 2 GB."""
    try:
        return message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise HeronError("PROTO005", "the module is too deep or too large for protobuf", why=str(error)) from None


class _Writer:
    def __init__(self, module: Module) -> None:
        self._module = module
        self._shapes = ShapeWriter()
        self._annotations = AnnotationWriter()
        self._plans: dict[Op, _Plan] = {}
        self._numbers = {c: n for n, c in enumerate(module.computations)}
        self._ids: dict[Instruction, int] = {}

    def module(self) -> Message:
        module = self._module
        to = MESSAGES["HloModuleProto"]()
        to.MergeFromString(module.carried)
        to.name = module.name
        to.entry_computation_name = module.entry.name
        to.entry_computation_id = self._numbers[module.entry]
        fused = {i.calls for i in module.instructions() if i.opcode == "fusion"}
        threads = _threads(module)
        for c in computation_order(module):
            self._computation(c, to.computations.add(), c in fused, threads.get(c, ""))
        self._header(to)
        return to

    def _schedule_reducers(self, to: Message) -> None:
        """XLA wants an order for all but fused computations; those an op applies to elements keep theirs."""
        fused = self._module.fusion_bodies()
        for c in computation_order(self._module):
            if c not in fused and c not in (self._module.schedule or {}):
                ids = [self._ids[i] for i in c.instructions]
                to.schedule.sequences.add(key=self._numbers[c]).value.instruction_ids.extend(ids)

    def _header(self, to: Message) -> None:
        module, header = self._module, self._module.header
        parameters, result = module.entry_layout or (tuple(p.shape for p in module.entry.parameters), None)
        names = [f"p{n}" for n in range(len(parameters))]
        self._shapes.program(list(parameters), result or module.entry.root.shape, names, to.host_program_shape)
        for c, order in (module.schedule or {}).items():
            to.schedule.sequences.add(key=self._numbers[c]).value.instruction_ids.extend([self._ids[i] for i in order])
        if module.schedule is not None:
            to.schedule.SetInParent()
            self._schedule_reducers(to)
        for output, number, index, kind in header.get("input_output_alias", ()):
            kind_number = enums.number(enums.ALIAS, kind)
            to.input_output_alias.entries.add(
                output_shape_index=output, parameter_number=number, parameter_shape_index=index, kind=kind_number
            )
        for number, index in header.get("buffer_donor", ()):
            to.buffer_donor.entries.add(parameter_number=number, parameter_shape_index=index)
        if "frontend_attributes" in header:
            write_frontend_attributes(header["frontend_attributes"], to.frontend_attributes)
        if "stack_frames" in header:
            write_stack_frames(header["stack_frames"], to.stack_frame_index)
        to.header_text = print_header({n: v for n, v in header.items() if n not in _OWN_FIELDS})
        for parameter, index, offset in module.cross_program_prefetches:
            to.cross_program_prefetches.add(parameter=parameter, index=index, offset=offset)
        for text in module.spmd_parameter_shardings or ():
            self._annotations.sharding(text, to.spmd_parameters_shardings.add())
        if module.spmd_output_sharding is not None:
            self._annotations.sharding(module.spmd_output_sharding, to.spmd_output_sharding)

    def _computation(self, c: Computation, to: Message, fused: bool, thread: str) -> None:
        number = self._numbers[c]
        merge_unread(c.extras, c.name, to)
        to.name, to.id, to.is_fusion_computation = c.name, number, fused
        to.execution_thread = c.extras.get("execution_thread", thread)
        parameters = c.parameters
        shapes, names = [p.shape for p in parameters], [p.name for p in parameters]
        self._shapes.program(shapes, c.root.shape, names, to.program_shape)
        upper = number << 32
        self._ids.update((i, upper + n) for n, i in enumerate(c.instructions))
        to.root_id = self._ids[c.root]
        add = to.instructions.add
        for i in print_order(c):
            self._instruction(i, add())

    def _instruction(self, i: Instruction, to: Message) -> None:
        to.name, to.opcode = i.name, i.opcode
        self._shapes.write(i.shape, to.shape)
        ids = self._ids
        to.id = ids[i]
        if i.operands:
            to.operand_ids.extend([ids[o] for o in i.operands])
        if i.metadata is not None:
            write_metadata(i.metadata, to.metadata)
        if i.control_predecessors:
            to.control_predecessor_ids.extend([ids[o] for o in i.control_predecessors])
        plan = self._plans.get(i.op)
        if plan is None:
            plan = self._plans[i.op] = _plan(i.op)
        attrs = i.attrs
        for name, default, write, always in plan:
            value = attrs.get(name, default)
            if always or (value is not None and value != default):
                write(to, value, i, self._shapes)
        if (called := i.called) and attrs:
            if i.opcode == "while":
                called.reverse()  # the body comes first
            to.called_computation_ids.extend([self._numbers[c] for c in called])
        if i.extras:
            self._annotations.write(i, to)


def _plan(op: Op) -> _Plan:
    plan: _Plan = []
    for name, spec in op.attributes.items():
        if spec.kind in CALLS:
            continue
        field = field_of(op, name)
        write: Write = _missing(name) if field is None else field.write
        plan.append((name, spec.default, write, field is not None and field.always))
    return plan


def _missing(name: str) -> Callable[..., None]:
    def fail(to: Message, value: Any, i: Instruction, shapes: ShapeWriter) -> None:
        raise HeronError("PROTO005", f"'{name}' of '{i.opcode}' has no field in HloInstructionProto", where=i.name)

    return fail


def _threads(module: Module) -> dict[Computation, str]:
    """The thread each asynchronous computation runs on, where that is not the main one."""
    starts = [i for i in module.instructions() if i.opcode == "async-start"]
    return {c: i.async_execution_thread for i in starts for c in i.called if i.async_execution_thread != "main"}
