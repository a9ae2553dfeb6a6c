"""Loops and branches. Their regions may use values from outside: loops carry them along, branches get them passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.sizes import fits, integers
from heron.frontends.stablehlo.syntax import Operation, Region, plain
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_


def _captured(b: Block, op: Operation, regions: Sequence[Region]) -> dict[str, Instruction]:
    """Values from outside that regions use; constants are left out, they are repeated inside."""
    found: dict[str, Instruction] = {}
    for name in dict.fromkeys(n for region in regions for n in region.free()):
        i = b.value(name, op)
        if i.opcode != "constant":
            found[name] = i
    return found


def _pack(shapes: Sequence[Shape]) -> Shape:
    return shapes[0] if len(shapes) == 1 else tuple_(list(shapes))


def _enter(block: Block, op: Operation, names: Sequence[str], shapes: Sequence[Shape]) -> list[Instruction]:
    """Let names stand for the parts of a region's only parameter."""
    parameter = block.parameter(0, _pack(shapes), "arg_tuple" if len(shapes) != 1 else plain(names[0]))
    parts = block.unpacked(parameter, len(shapes))
    for name, part in zip(names, parts, strict=True):
        block.define(name, part, op)
    return parts


# -- at the same time as others --------------------------------------------------------------------------------------
@rule("async_start")
def _async_start(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """The value of a future holds the operands, too: HLO has no type that hides them."""
    i = b.add("async-start", operands, calls=b.region(op, 0, "async_computation"))
    if len(op.types) != 1 or i.shape.at((1,)).bare is not op.types[0].bare:
        op.fail("SHLO004", "the future is not of what the region returns", why=f"that is {i.shape.at((1,)).bare}")
    op.types = (i.shape,)
    return i


@rule("async_done")
def _async_done(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    return b.unpacked(b.add("async-done", operands), len(op.types))


# -- scans -----------------------------------------------------------------------------------------------------------
@rule("chlo.scan")
def _scan(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """The region takes a slice of each input, then the carries, and gives slices of the outputs, then the carries."""
    sizes = op.ints("operandSegmentSizes")
    if len(sizes) != 2 or sum(sizes) != len(operands):
        op.wrong("operandSegmentSizes", "how many operands are inputs and how many carries")
    flags: dict[str, Any] = {name: True for name in ("is_reverse", "is_associative") if op.flag(name)}
    i = b.add(
        "scan",
        operands,
        tuple_(list(op.types)),
        dimensions=(op.integer("dimension"),),
        num_carries=sizes[1],
        to_apply=b.region(op, 0, "scanned"),
        **flags,
    )
    i.op.shape(i, *[o.shape for o in operands])
    return b.parts(i)


# -- while -----------------------------------------------------------------------------------------------------------
@rule("while")
def _while(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    if len(op.regions) != 2:
        op.fail("SHLO006", "while needs a condition and a body", why=f"{len(op.regions)} regions given")
    captured = _captured(b, op, op.regions)
    shapes = [i.shape for i in (*operands, *captured.values())]
    known = _invariants(b, op, operands)
    condition = _loop_part(b, op, 0, shapes, captured, known, "condition")
    body = _loop_part(b, op, 1, shapes, captured, known, "body")
    i = b.add("while", (b.packed([*operands, *captured.values()]),), condition=condition, body=body)
    return b.unpacked(i, len(shapes))[: len(operands)]


def _invariants(b: Block, op: Operation, operands: list[Instruction]) -> dict[int, Instruction]:
    """Integers that sizes in the loop may depend on: known before it, and handed on by each turn as they are."""
    region = op.regions[1]
    if b.folding is None or not region.operations:
        return {}
    given = zip(region.arguments, region.operations[-1].operands, operands, strict=False)
    return {n: i for n, (a, out, i) in enumerate(given) if a.name == out and integers(i) is not None}


def _loop_part(
    b: Block,
    op: Operation,
    n: int,
    shapes: list[Shape],
    captured: dict[str, Instruction],
    known: dict[int, Instruction],
    name: str,
) -> Computation:
    region, block = op.regions[n], b.inner(name)
    stated = [a.type.bare for a in region.arguments]
    if len(stated) + len(captured) != len(shapes) or not all(map(fits, shapes, stated)):
        op.fail("SHLO004", f"the arguments of the {name} are not the loop's values", why=f"{stated}")
    parts = _enter(block, op, [*(a.name for a in region.arguments), *captured], shapes)
    for k, i in known.items():
        values = integers(i)
        assert values is not None
        block.values[region.arguments[k].name] = block.constant(i, i.shape, lambda v=values: v)
    results = block.run(region, region.at)
    if n == 0:
        if len(results) != 1:
            op.fail("SHLO004", "the condition returns one value", why=f"{len(results)} given")
        return block.finish(results[0])
    results = [parts[k] if k in known else r for k, r in enumerate(results)]
    return block.finish(block.packed([*results, *parts[len(stated) :]]))


# -- branches --------------------------------------------------------------------------------------------------------
@rule("if", "case")
def _branches(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    if not op.regions or (op.name.endswith("if") and len(op.regions) != 2):
        op.fail("SHLO006", f"{op.name} needs its branches", why=f"{len(op.regions)} regions given")
    computations: list[Computation] = []
    passed: list[Instruction] = []
    count = len(op.types)
    for n, region in enumerate(op.regions):
        captured = _captured(b, op, [region])
        block = b.inner(f"branch_{n}")
        _enter(block, op, [*captured], [i.shape for i in captured.values()])
        results = block.run(region, region.at)
        if len(results) != count:
            op.fail("SHLO004", f"branch {n} returns {len(results)} values", why=f"{op.name} has {count} results")
        computations.append(block.finish(block.packed(results)))
        passed.append(b.packed([*captured.values()]))
    i = b.add("conditional", [*operands, *passed], branch_computations=tuple(computations))
    return b.unpacked(i, count)
