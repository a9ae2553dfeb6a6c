"""A custom call on parts of its arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part, local_shape


def same_call(
    p: Partitioner, i: Instruction, operands: Sequence[Part], results: Sequence[TensorSharding]
) -> list[Part]:
    """The call on parts. They have the layouts that it states for its arrays."""
    values = [whole.value for whole in default.whole_operands(p, i, operands)]
    attrs: dict[str, Any] = dict(i.attrs)
    constraints = i.operand_layout_constraints
    if constraints is not None:
        attrs["operand_layout_constraints"] = tuple(_laid(v.shape, c) for v, c in zip(values, constraints, strict=True))
    if i.called_computations:
        attrs["called_computations"] = tuple(map(p.copied, i.called_computations))
    made = p.add(i.opcode, values, _local(p, i.shape, list(results)), **attrs)
    for name in ("frontend_attributes", "backend_config"):
        if name in i.extras:
            made.extras[name] = i.extras[name]
    return p.leaves(made, i.shape, results)


def _local(p: Partitioner, shape: Shape, shardings: list[TensorSharding]) -> Shape:
    """The shape of the parts of a result, with its layouts. Takes the shardings of its leaves off the list."""
    if shape.tuple_shapes is not None:
        return tuple_([_local(p, s, shardings) for s in shape.tuple_shapes])
    return _laid(local_shape(shape, shardings.pop(0), p.mesh), shape)


def _laid(shape: Shape, like: Shape) -> Shape:
    if shape.tuple_shapes is not None:
        return tuple_([_laid(s, w) for s, w in zip(shape.tuple_shapes, like.tuple_shapes or (), strict=True)])
    return shape.with_layout(like.layout) if shape.is_array else shape
