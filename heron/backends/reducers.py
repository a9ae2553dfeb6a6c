"""Kernels that combine the arrays that the members of a group bring to a collective, elementwise, in their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import UnitAttr

from heron.codegen.emit import emit_fusion
from heron.codegen.ir.editing import argument_attributes, entry_of, set_argument_attributes
from heron.codegen.kernel import Kernel
from heron.hlo.facts import is_order_free
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, array
from heron.hlo.ir.types import F32, ElementType
from heron.hlo.meaning.batched import simple_opcode

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

#: elements of the arrays that a reducer is written for; it is called on ranges of fewer
_ELEMENTS = 1 << 40


def reducer(lowering: Lowering, i: Instruction, t: ElementType, members: int) -> str:
    """The name of the kernel that combines arrays of `members` devices by the reducer of a collective.

    Its arguments are the members' arrays and the result. Narrow floats are summed in f32 and rounded once.
    """
    key = ("reducer", fingerprint(i.to_apply), t, members)
    return lowering.shared_kernel(i, key, lambda name: _emitted(i.to_apply, t, members, name, lowering))


def _emitted(c: Computation, t: ElementType, members: int, name: str, lowering: Lowering) -> Kernel:
    fusion = _fusion(c, t, members)
    kernel = emit_fusion(fusion, name, lowering.target, in_place=False)
    kernel.parts = 1
    _mark_as_parts(kernel)
    return kernel


def _fusion(c: Computation, t: ElementType, members: int) -> Instruction:
    """A fusion of one program, of arrays longer than any."""
    module = Module("reducer")
    body, entry = Computation("reduced"), Computation("main")
    module.add_computation(body)
    module.add_computation(entry, entry=True)
    shape = array(t, (_ELEMENTS,)).with_default_layout()
    given = [body.add_parameter(n, shape) for n in range(members)]
    opcode = simple_opcode(c)
    wide = opcode is not None and t.is_float and t.bits < 32 and not is_order_free(opcode)
    if wide:
        given = [_converted(body, x, F32) for x in given]
    result = given[0]
    for x in given[1:]:
        result = _combined(body, c, opcode, result, x)
    body.root = _converted(body, result, t) if wide else result
    if body.root.opcode == "parameter":
        body.root = body.add("copy", [body.root], shape)
    operands = [entry.add_parameter(n, shape) for n in range(members)]
    entry.root = entry.add("fusion", operands, shape, "reducer", kind="kLoop", calls=body)
    return entry.root


def _combined(body: Computation, c: Computation, opcode: str | None, a: Instruction, b: Instruction) -> Instruction:
    if opcode is not None and opcode != "second":
        return body.add(opcode, [a, b], a.shape)
    return body.add("map", [a, b], a.shape, dimensions=(0,), to_apply=c)


def _converted(body: Computation, x: Instruction, t: ElementType) -> Instruction:
    shape: Shape = array(t, x.shape.dims).with_default_layout()
    return body.add("convert", [x], shape)


def _mark_as_parts(kernel: Kernel) -> None:
    """Tell the transforms that its arguments are parts of arrays: nothing is known of where they begin and end."""
    entry = entry_of(kernel.module, kernel.name)
    attributes = argument_attributes(entry)
    for marked in attributes[: len(kernel.args)]:
        marked["xla_gpu.part"] = UnitAttr()
    set_argument_attributes(entry, attributes)
