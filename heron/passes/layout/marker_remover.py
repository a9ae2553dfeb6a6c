"""marker-remover: custom calls that say where a value should be kept."""

from __future__ import annotations

from heron.hlo.calls.markers import BORDERS, MARKERS, MARKING, TO_DEVICE, TO_HOST, is_identity, is_unwritten, move_of
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import unwritten
from heron.records import dataclass


@register
@dataclass(frozen=True)
class MarkerRemover(Pass):
    """Replaces custom calls that only annotate their operand by it, each with the reason.

    Shardings are read before, where there are several devices. With ``offload``, calls that move an array to the
    host's memory and back stay, in one form, for `host-offloader`, and copies between the two take this form;
    without, such an array stays where it is computed. Arrays that nobody has written (AllocateBuffer) become zeros.

    c = f32[8] custom-call(f32[8] x), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true
    ROOT n = f32[8] negate(c)
    ->
    ROOT n = f32[8] negate(x)
    """

    name = "marker-remover"
    looks_for = MARKING
    offload: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = _fill(module)
        changed |= self.offload and _name_moves(module)
        found = [i for i in module.instructions() if i.opcode == "custom-call" and is_identity(i)]
        if module.num_partitions > 1:
            found = [i for i in found if i.custom_call_target not in BORDERS]
        moves = {i: move_of(i) for i in found} if self.offload else {}
        if TO_HOST not in moves.values():
            moves.clear()
        for i in found:
            if moves.get(i):
                _keep(i, moves[i])
                continue
            value = take_out(i)
            why = f"{i.custom_call_target} changes no value: {MARKERS.get(i.custom_call_target, 'a part is the whole')}"
            ctx.decide(True, why, subject=i.name, object=value.name)
        return bool(found) or changed


def _fill(module: Module) -> bool:
    """Write arrays that nobody has written as zeros; whether there were any."""
    found = [i for i in module.instructions() if i.opcode == "custom-call" and is_unwritten(i)]
    for i in found:
        home = i.parent
        assert home is not None
        i.drop_control_edges()
        home.replace(i, unwritten(home, i.shape))
        if i.parent is home:  # a call that is said to have an effect
            home.remove(i)
    return bool(found)


def _name_moves(module: Module) -> bool:
    """Write copies between the memories of host and device as calls, since layouts are chosen anew; whether any was."""
    found = [i for i in module.instructions() if i.opcode == "copy" and i.shape.is_array]
    found = [i for i in found if i.shape.is_on_host != i.operands[0].shape.is_on_host]
    for i in found:
        assert i.parent is not None
        move = TO_HOST if i.shape.is_on_host else TO_DEVICE
        i.parent.replace_with(i, "custom-call", i.operands, i.shape.in_memory(0), custom_call_target=move)
    return bool(found)


def _keep(i: Instruction, move: str) -> None:
    """Write a move between memories in its one form, which nothing need keep if nobody reads it."""
    i.attrs["custom_call_target"] = move
    i.attrs.pop("custom_call_has_side_effect", None)
    i.extras.pop("frontend_attributes", None)
    i.shape = i.shape.in_memory(0)


def take_out(i: Instruction) -> Instruction:
    """Replace a marker call by its value, which is returned."""
    home = i.parent
    assert home is not None
    value = _value(i)
    i.drop_control_edges()
    home.replace(i, value)
    if i.parent is home:
        home.remove(i)
    return value


def _value(i: Instruction) -> Instruction:
    """The value of a marker call: its operand in the stated layout, a tuple, or nothing."""
    home = i.parent
    assert home is not None
    if i.shape.is_tuple and not (len(i.operands) == 1 and i.operands[0].shape.bare is i.shape.bare):
        return home.add("tuple", i.operands if i.shape.tuple_shapes else [], i.shape, like=i)
    (x,) = i.operands
    return x if x.shape is i.shape or x.shape.is_tuple else home.add("copy", [x], i.shape, like=i)
