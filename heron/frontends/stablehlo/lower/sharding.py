"""Shardy's operations, as the custom calls that represent them in XLA's HLO."""

from __future__ import annotations

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.forms import BY_PARTITIONER
from heron.frontends.stablehlo.syntax import Operation, as_text
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.sharding.shardy import read_sharding, read_shardings


@rule("sdy.sharding_constraint", "sdy.reshard")
def _sharding_constraint(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """The value itself in a program of one partition."""
    (x,) = operands
    return x if b.importer.is_single else constrained(b, x, "Sharding", as_text(op.find("sharding")))


def constrained(b: Block, x: Instruction, target: str, sharding: str) -> Instruction:
    """A call that gives a value a sharding, in Shardy's words and as tiles. Raises HLO027 for what is no sharding."""
    i = b.add("custom-call", (x,), x.shape, custom_call_target=target)
    i.extras["sharding"] = str(read_sharding(sharding, b.importer.meshes).plain)
    text = f"#sdy.sharding_per_value<[{sharding.removeprefix('#sdy.sharding')}]>"
    i.extras["frontend_attributes"] = {"xla.sdy.sharding": text}
    return i


@rule("sdy.manual_computation")
def _manual_computation(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """A call of the body on each device's part, between the changes from whole values to parts and back."""
    axes = {"xla.sdy.manual_axes": _wrapped("#sdy<manual_axes", op.find("manual_axes"))}
    body = b.region(op, 0, "xla.sdy.manual_computation_body")
    if b.importer.is_single:  # the part is the whole
        return b.unpacked(b.add("call", operands, to_apply=body), len(op.types))
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


# -- what is said about values ---------------------------------------------------------------------------------------
@rule("sdy.propagation_barrier")
def _propagation_barrier(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    (x,) = operands
    if b.importer.is_single:
        return x
    i = b.add("custom-call", (x,), x.shape, custom_call_target="xla.sdy.PropagationBarrier")
    i.extras["frontend_attributes"] = {"xla.sdy.allowed_direction": op.word("allowed_direction")}
    return i


@rule("sdy.sharding_group")
def _sharding_group(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """A call for its effect: values of one group are sharded alike."""
    if not b.importer.is_single:
        group = f"{op.integer('group_id')} : i64"
        i = b.add("custom-call", operands, tuple_(()), custom_call_target="xla.sdy.ShardingGroup")
        i.attrs["custom_call_has_side_effect"] = True
        i.extras["frontend_attributes"] = {"xla.sdy.sharding_group_id": group}
    return []


@rule("sdy.data_flow_edge")
def _data_flow_edge(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """The value itself: HLO shows the edges of its data flow."""
    return operands


@rule("sdy.named_computation")
def _named_computation(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """A call between constraints, where shardings are given."""
    body = b.region(op, 0, op.word("name"))
    results = b.unpacked(b.add("call", _constrained(b, op, operands, "in_shardings"), to_apply=body), len(op.types))
    return _constrained(b, op, results, "out_shardings")


def _constrained(b: Block, op: Operation, values: list[Instruction], name: str) -> list[Instruction]:
    if b.importer.is_single or op.find(name) is None:
        return values
    given = read_shardings(_wrapped("#sdy.sharding_per_value<", op.find(name)), b.importer.meshes)
    if len(given) != len(values):
        op.wrong(name, f"one sharding for each of {len(values)} values")
    made: list[Instruction] = []
    for x, sharding in zip(values, given, strict=True):
        made.append(b.add("custom-call", (x,), x.shape, custom_call_target="Sharding"))
        made[-1].extras["sharding"] = str(sharding)
    return made


@rule(*BY_PARTITIONER)
def _by_partitioner(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    op.fail(
        "SHLO005",
        f"{op.name} is not supported",
        why="Shardy writes it when it partitions; use the program before partitioning",
    )
