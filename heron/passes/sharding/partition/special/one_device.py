"""Ops that one device runs for all: calls with side effects, and those that the program puts there."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.ir.types import PRED, S32, ElementType
from heron.hlo.sharding import Kind
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.special.same_call import same_call


def is_given(i: Instruction) -> bool:
    """Whether the program puts the instruction on a device."""
    return _device(i) is not None


def _device(i: Instruction) -> int | None:
    sharding = i.sharding
    leaves = () if sharding is None else sharding.elements or (sharding,)
    found = [s.plain.device for s in leaves if s.plain.kind is Kind.MAXIMAL]
    return found[0] if found else None


def on_one_device(p: Partitioner, i: Instruction, operands: Sequence[Part]) -> list[Part]:
    """The call on whole operands in a branch that one device takes; its results then go to all.

    Inside a manual computation one of the devices that have equal values takes it, which may be each.
    """
    manual = p.manual(i, operands)
    axes = tuple(a for a in range(len(p.mesh.sizes)) if a not in manual)
    shardings = [TensorSharding.whole(s.rank, manual) for _, s in i.shape.leaves()]
    if p.mesh.size(axes) == 1:
        return same_call(p, i, operands, shardings)
    device = None if manual else _device(i)
    number = 0 if device is None else int(p.devices.places[device])
    p.decide(True, f"device {device or 0} runs it for all {p.mesh.size(axes)}")
    given = p.joined(tuple_([o.shape for o in operands]), operands)
    there, elsewhere = _branch(p, i, operands, given.shape, shardings), _nothing(p, i, given.shape)
    chosen = p.compare("EQ", p.index(axes), p.constant(number, S32))
    made = p.add("conditional", [chosen, given, given], there.root.shape, branch_computations=(there, elsewhere))
    parts = p.leaves(made, i.shape, shardings)
    return [Part(_sent(p, o.value, axes), o.shape, o.sharding) if o.shape.is_array else o for o in parts]


def _branch(
    p: Partitioner, i: Instruction, operands: Sequence[Part], given: Shape, shardings: list[TensorSharding]
) -> Computation:
    """A computation that runs the call on the elements of its parameter."""
    with p.computation(f"{i.name}_there") as made:
        values = made.add_parameter(0, given)
        elements = [p.add("get-tuple-element", [values], o.value.shape, index=n) for n, o in enumerate(operands)]
        parts = [Part(e, o.shape, o.sharding) for e, o in zip(elements, operands, strict=True)]
        made.root = p.joined(i.shape, same_call(p, i, parts, shardings))
    return made


def _nothing(p: Partitioner, i: Instruction, given: Shape) -> Computation:
    """A computation that gives what adds nothing to the call's results."""
    with p.computation(f"{i.name}_elsewhere") as made:
        made.add_parameter(0, given)
        leaves = [Part(_neutral(p, s), s, TensorSharding.whole(s.rank)) for _, s in i.shape.leaves()]
        made.root = p.joined(i.shape, leaves)
    return made


def _neutral(p: Partitioner, shape: Shape) -> Instruction:
    if not shape.is_array:
        return p.add("after-all")
    t = shape.element_type
    return p.full(facts.identity(_adder(t), t), t, shape.dims)


def _sent(p: Partitioner, value: Instruction, axes: Axes) -> Instruction:
    """The one value that is not neutral, on all devices."""
    return p.all_reduce(value, axes, _adder(value.shape.element_type))


def _adder(t: ElementType) -> str:
    return "or" if t is PRED else "add"
