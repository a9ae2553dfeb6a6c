"""Custom calls: on parts where something says how, else on whole operands; those of one device there alone."""

from __future__ import annotations

from heron.analysis.sharding.custom import PARTITIONERS
from heron.analysis.sharding.rules import rule_of
from heron.hlo.calls.markers import MARKERS
from heron.hlo.calls.python import calls_python, is_partitioned
from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import Result, partitions
from heron.passes.sharding.partition.special import by_user, one_device
from heron.passes.sharding.partition.special.same_call import same_call
from heron.passes.sharding.partition.special.topk import first_of


@partitions("custom-call")
def custom_call(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The user's partitioner, the sharding rule of the call, or whole operands."""
    if i.custom_call_target in PARTITIONERS:
        return by_user.partition(p, i, operands)
    if i.custom_call_target in MARKERS and not any(True for _ in i.shape.leaves()):
        return []
    if rule_of(i) is not None:
        choice = default.chosen(p, i, operands)
        return same_call(p, i, choice.operands, choice.results)
    if is_partitioned(i):
        return same_call(p, i, operands, [TensorSharding.whole(0) for _ in i.shape.leaves()])
    wholes, manual = [p.whole(o) for o in operands], p.manual(i, operands)
    # a user's function may give each device something else
    if i.has_side_effect or calls_python(i) or one_device.is_given(i):
        return one_device.on_one_device(p, i, wholes)
    p.decide(False, f"nothing says how '{i.custom_call_target}' works on parts: every device computes all of it")
    return same_call(p, i, wholes, [TensorSharding.whole(s.rank, manual) for _, s in i.shape.leaves()])


@partitions("custom-call:TopK")
def topk(p: Partitioner, i: Instruction, operands: list[Part]) -> Result:
    """The largest elements, as the op gives them."""
    found = first_of(p, i, operands[0], i.shape.at((0,)).dims[-1], largest=True)
    return custom_call(p, i, operands) if found is None else found
