"""Shardy's operations, as the calls XLA knows them by in HLO."""

from __future__ import annotations

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.syntax import Operation, as_text
from heron.hlo.instruction import Instruction
from heron.hlo.shape import Shape, tuple_


@rule("sdy.sharding_constraint")
def _sharding_constraint(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """Nothing to say for a program of one partition."""
    (x,) = operands
    if b.importer.is_single:
        return x
    i = b.add("custom-call", operands, x.shape, custom_call_target="xla.sdy.ShardingConstraint")
    sharding = as_text(op.find("sharding")).removeprefix("#sdy.sharding")
    i.extras["frontend_attributes"] = {"xla.sdy.sharding": f"#sdy.sharding_per_value<[{sharding}]>"}
    return i


@rule("sdy.manual_computation")
def _manual_computation(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """A call of the body on each device's part, between the changes from whole values to parts and back."""
    axes = {"xla.sdy.manual_axes": _wrapped("#sdy<manual_axes", op.find("manual_axes"))}
    body = b.region(op, 0, "xla.sdy.manual_computation_body")
    inputs = _turned(b, op, operands, [p.shape for p in body.parameters], "GlobalToLocalShape", "in_shardings", axes)
    results = b.unpacked(b.add("call", inputs, to_apply=body), len(op.types))
    return _turned(b, op, results, list(op.types), "LocalToGlobalShape", "out_shardings", axes)


def _turned(
    b: Block,
    op: Operation,
    values: list[Instruction],
    shapes: list[Shape],
    target: str,
    shardings: str,
    axes: dict[str, str],
) -> list[Instruction]:
    """One custom call that gives all values their other shapes."""
    if not values:
        return []
    to = shapes[0] if len(shapes) == 1 else tuple_(shapes)
    i = b.add("custom-call", values, to, custom_call_target=f"xla.sdy.{target}")
    text = _wrapped("#sdy.sharding_per_value<", op.find(shardings))
    i.extras["frontend_attributes"] = {**axes, f"xla.sdy.{shardings}": text}
    return b.unpacked(i, len(shapes))


def _wrapped(prefix: str, value: object) -> str:
    """An attribute with its dialect's name, which only the generic form gives."""
    text = as_text(value)
    return text if text.startswith("#") else f"{prefix}{text}>"
