"""trivial-collective-remover: collectives of devices that are alone in their group."""

from __future__ import annotations

from heron.analysis.cost.communication import WAYS, group_size
from heron.hlo.facts import is_device_id
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat, unwritten
from heron.records import dataclass

#: what a device alone in its group gets of them is what it gave
_HANDING_BACK = frozenset(WAYS) - {"collective-permute", "ragged-all-to-all", "send", "recv"}


@register
@dataclass(frozen=True)
class TrivialCollectiveRemover(Pass):
    """Replaces collectives in groups of one device by their operands, and the number of the only device by zero.

    A permute on one device hands its operand on to the device itself, or zeros where nobody sends to it. Programs
    written for any number of devices run on one without a network.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    r = f32[8] all-reduce(f32[8] x), replica_groups={{0}}, to_apply=sum
    ROOT g = f32[8] all-gather(r), replica_groups={{0}}, dimensions={0}
    ->
    ROOT x
    """

    name = "trivial-collective-remover"
    constraints = (
        Constraint("trivial-collective-remover", "async-collective-creator", "nothing is begun early for nobody"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        computations = module.non_fusion_computations()
        found = [i for c in computations for i in c.instructions if i.opcode in WAYS or is_device_id(i)]
        if not found:
            return False
        begun = {i.calls for c in computations for i in c.instructions if i.opcode == "async-start"}
        changed = False
        for i in found:
            if i.parent in begun:
                continue
            value = _alone(i, module)
            if value is None:
                continue
            ctx.decide(True, "no other device takes part", subject=i.name)
            home = i.parent
            assert home is not None
            i.drop_control_edges()
            home.replace(i, value)
            if i.parent is home:  # it counts as an effect, but there is nobody to see it
                home.remove(i)
            changed = True
        return changed


def _alone(i: Instruction, module: Module) -> Instruction | None:
    """The result of `i` if no other device takes part; else None."""
    home = i.parent
    assert home is not None
    is_alone = module.replica_count * module.num_partitions == 1
    if is_device_id(i):
        return splat(home, i.shape, 0) if is_alone else None
    if i.opcode == "collective-permute":
        return _permuted_alone(i) if is_alone else None
    if i.opcode not in _HANDING_BACK or group_size(i, module) != 1:
        return None
    if i.opcode == "collective-broadcast" and not is_alone:  # who is in no group gets zeros
        return None
    parts = i.shape.tuple_shapes if i.shape.tuple_shapes is not None else (i.shape,)
    if [s.bare for s in parts] != [o.shape.bare for o in i.operands]:  # it was written for more devices
        return None
    return home.add("tuple", i.operands, i.shape, like=i) if i.shape.is_tuple else i.operands[0]


def _permuted_alone(i: Instruction) -> Instruction | None:
    """The result of a collective-permute on one device; None for the form that writes slices into a buffer."""
    home = i.parent
    assert home is not None
    if i.attrs.get("slice_sizes") is not None:
        return None
    pairs = i.attrs.get("source_target_pairs") or ()
    if any(tuple(pair) != (0, 0) for pair in pairs):  # it names devices that do not exist
        return None
    values = i.operands if pairs else [unwritten(home, o.shape) for o in i.operands]
    return home.add("tuple", values, i.shape, like=i) if i.shape.is_tuple else values[0]
