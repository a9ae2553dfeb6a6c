"""Operations that apply a region to elements: reductions, windows, sorts, maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.frontends.stablehlo.block import RETURNS, Block, rule
from heron.frontends.stablehlo.lower.elementwise import opcode
from heron.frontends.stablehlo.quantization import quantization
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir import op as ops
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR, Shape, scalar
from heron.hlo.ir.types import ElementType
from heron.hlo.ir.window import Window, WindowDim
from heron.hlo.ops.binary import Binary


def promoted(b: Block, op: Operation, operands: Sequence[Instruction]) -> list[Instruction]:
    """Operands in the types of the arguments of region 0, in order, which takes turns where operands are more.

    StableHLO lets a region combine bf16 in f32, which is then the result's type; HLO's ops have one type.
    """
    arguments = op.regions[0].arguments if op.regions else ()
    if not arguments:
        return list(operands)
    types = [arguments[n % len(arguments)].type for n in range(len(operands))]
    return [_converted(b, x, to) for x, to in zip(operands, types, strict=True)]


def _converted(b: Block, x: Instruction, to: Shape) -> Instruction:
    """`x` in the element type of `to`, if that is a wider one of the same kind."""
    ours, theirs = x.shape.element_type, to.element_type
    if quantization(to) is not None or ours.kind is not theirs.kind or ours.bits >= theirs.bits:
        return x
    return b.add("convert", (x,), x.shape.with_type(theirs))


@rule("reduce")
def _reduce(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    operands = promoted(b, op, operands)
    i = b.add("reduce", operands, dimensions=op.ints("dimensions"), to_apply=_reducer(b, op, operands))
    return b.unpacked(i, len(operands) // 2)


def _reducer(b: Block, op: Operation, operands: list[Instruction]) -> Computation:
    """The region, or ``applies stablehlo.add``."""
    if not op.words:
        return combiner(b, op, 0)
    code = opcode(op.words[0])
    if not _is_binary(code):
        op.fail("SHLO002", f"'{op.words[0][:40]}' cannot be applied by a reduction", hint="name a binary operation")
    return b.importer.reducer(code, operands[-1].shape.element_type)


def combiner(b: Block, op: Operation, n: int) -> Computation:
    """Region `n`; those that only apply a binary op to their arguments are shared between operations."""
    if n < len(op.regions):
        region = op.regions[n]
        arguments = [a.name for a in region.arguments]
        types = [a.type for a in region.arguments]
        plain = len(arguments) == 2 and not types[0].rank and not any(map(quantization, types))
        if plain and len(region.operations) == 2:
            first, last = region.operations
            code = opcode(first.name)
            applies = first.operands == arguments and last.operands == first.results and last.name in RETURNS
            applies = applies and last.given in (None, first.types)
            if applies and not first.attrs and _is_binary(code) and first.types == (types[1],):
                return b.importer.reducer(code, types[0].element_type)
    return b.region(op, n, "reducer")


def _is_binary(code: str) -> bool:
    found = ops.REGISTRY.get(code)
    return isinstance(found, Binary)


def _window(op: Operation, rank: int) -> Window:
    ones = (1,) * rank
    padding = op.table("padding") if op.find("padding") is not None and rank else [[0, 0]] * rank
    columns = zip(
        op.ints("window_dimensions", default=ones if op.name.endswith("scatter") else None),
        op.ints("window_strides", default=ones),
        padding,
        op.ints("base_dilations", default=ones),
        op.ints("window_dilations", default=ones),
        strict=True,
    )
    return tuple(WindowDim(size, step, low, high, base, wide) for size, step, (low, high), base, wide in columns)


@rule("reduce_window")
def _reduce_window(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    window, operands = _window(op, operands[0].shape.rank), promoted(b, op, operands)
    i = b.add("reduce-window", operands, window=window, to_apply=combiner(b, op, 0))
    return b.unpacked(i, len(operands) // 2)


@rule("select_and_scatter")
def _select_and_scatter(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    window = _window(op, operands[0].shape.rank)
    select, scatter = b.region(op, 0, "select"), combiner(b, op, 1)
    arguments = op.regions[1].arguments
    wide = [_converted(b, x, arguments[0].type) for x in operands] if arguments else operands
    if wide[0] is not operands[0]:  # the result has the type of what is selected from
        select = _of_wider(b, select, wide[0].shape.element_type)
    return b.add("select-and-scatter", wide, window=window, select=select, scatter=scatter)


def _of_wider(b: Block, select: Computation, to: ElementType) -> Computation:
    """`select` for its own values in a wider type."""
    made = b.importer.new_computation(f"{select.name}_{to}")
    wide = [made.add_parameter(n, scalar(to)) for n in range(2)]
    own = [made.add("convert", (x,), p.shape) for x, p in zip(wide, select.parameters, strict=True)]
    made.root = made.add("call", own, PRED_SCALAR, to_apply=select)
    return made


@rule("sort")
def _sort(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    rank = operands[0].shape.rank
    dim = op.integer("dimension", default=-1)
    attrs: dict[str, Any] = {"is_stable": True} if op.flag("is_stable") else {}
    comparator = b.region(op, 0, "comparator")
    i = b.add("sort", operands, dimensions=(dim + rank if dim < 0 else dim,), to_apply=comparator, **attrs)
    return b.unpacked(i, len(operands))


@rule("map")
def _map(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("map", operands, dimensions=op.ints("dimensions"), to_apply=b.region(op, 0, "mapped"))
