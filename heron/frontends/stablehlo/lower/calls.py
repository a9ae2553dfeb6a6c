"""Calls: of functions of the program, of composites, and of code outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.carried import carry
from heron.frontends.stablehlo.lower.approximate_top_k import approximate_top_k
from heron.frontends.stablehlo.lower.collectives import RAGGED, ragged_all_to_all
from heron.frontends.stablehlo.lower.dynamic_calls import SIZED_CALLS, result_types, shape_operands
from heron.frontends.stablehlo.syntax import Operation, as_text
from heron.hlo.calls.lapack import parse_options
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.shape import Shape

_API = {
    0: "API_VERSION_ORIGINAL",
    1: "API_VERSION_ORIGINAL",
    2: "API_VERSION_STATUS_RETURNING",
    3: "API_VERSION_STATUS_RETURNING_UNIFIED",
    4: "API_VERSION_TYPED_FFI",
}


@rule("func.call")
def _call(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    body = b.importer.called(op.word("callee"), op, operands)
    return b.unpacked(b.add("call", operands, to_apply=body), len(op.types))


@rule("composite")
def _composite(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    """A call of the decomposition, which says what composite it was."""
    body = b.importer.called(op.word("decomposition"), op, operands)
    i = b.add("call", operands, to_apply=body, is_composite=True)
    i.extras["frontend_attributes"] = {
        "composite.attributes": as_text(op.fields("composite_attributes")),
        "composite.name": op.word("name"),
        "composite.version": str(op.integer("version", default=0)),
    }
    return b.unpacked(i, len(op.types))


@rule("custom_call")
def _custom_call(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    target = op.word("call_target_name")
    if (lowering := SIZED_CALLS.get(target)) is not None:
        return lowering(b, op, operands)
    if target == RAGGED and len(op.types) == 1:
        return ragged_all_to_all(b, op, operands)
    config = _config(op)
    if target == "ApproxTopK" and (given := parse_options(config)).get("is_fallback"):
        return approximate_top_k(b, op, operands, given["reduction_dim"])
    if target == "Sharding" and b.importer.is_single and len(operands) == 1:
        return operands  # a sharding of one partition says nothing
    results = laid_out(op, "result_layouts", result_types(op, operands))
    sizes = shape_operands(op)
    kept = [n for n in range(len(operands)) if n not in sizes]
    attrs = _attributes(b, op, target, [o.shape for o in operands], kept)
    operands = [operands[n] for n in kept]
    i = b.add("custom-call", operands, results[0] if len(results) == 1 else shapes.tuple_(results), **attrs)
    i.op.shape(i, *[o.shape for o in operands])
    if config:
        i.extras["backend_config"] = config
    if not results:  # those of others are annotated as results
        carry(op, [i])
    return b.unpacked(i, len(results))


def _attributes(b: Block, op: Operation, target: str, operands: list[Shape], kept: list[int]) -> dict[str, Any]:
    """The attributes of a custom call; `kept` are the operands that are arrays of the call."""
    attrs: dict[str, Any] = {"custom_call_target": target}
    if op.find("operand_layouts") is not None:
        whole = laid_out(op, "operand_layouts", operands)
        laid = tuple(whole[n] for n in kept)
        if target.startswith("lapack_") and "gtsv" not in target and laid and _rows_first(laid[0]):
            op.wrong("operand_layouts", "matrices whose columns lie in one piece, which LAPACK reads,")
        attrs["operand_layout_constraints"] = laid
    if op.flag("has_side_effect"):
        attrs["custom_call_has_side_effect"] = True
    if aliases := _aliases(op):
        attrs["output_to_operand_aliasing"] = aliases
    if called := op.find("called_computations") or ():
        attrs["called_computations"] = tuple(b.importer.called(name, op) for name in called)
    version = 4 if op.find("mhlo.backend_config") is not None else op.integer("api_version", default=1)
    if _API.get(version, _API[1]) != _API[1]:
        attrs["api_version"] = _API[version]
    return attrs


def _rows_first(matrix: Shape) -> bool:
    """Whether rows of a matrix, or of the last two dimensions, lie in one piece, and columns do not."""
    if not matrix.is_array or matrix.rank < 2 or matrix.layout is None:
        return False
    return min(matrix.dims[-2:]) > 1 and matrix.layout.minor_to_major[0] == matrix.rank - 1


def _config(op: Operation) -> str:
    """The text of either kind of backend_config; an empty one says nothing."""
    typed = op.find("mhlo.backend_config")
    found = typed if typed is not None else op.find("backend_config")
    text = as_text(found) if isinstance(found, dict) else str(found or "")
    return "" if text == "{}" else text


def laid_out(op: Operation, name: str, given: list[Shape]) -> list[Shape]:
    """Shapes with the layouts an attribute lists, minor dimensions first."""
    layouts = op.find(name)
    if layouts is None:
        return given
    if not isinstance(layouts, tuple) or len(layouts) != len(given):
        op.wrong(name, "one layout a value")
    found: list[Shape] = []
    for shape, order in zip(given, layouts, strict=True):
        order = tuple(np.asarray(order).reshape(-1).tolist())
        if not shape.is_array:
            found.append(shape)
            continue
        if len(order) == 1 and shape.rank > 1 or sorted(order) != list(range(shape.rank)):
            op.wrong(name, f"an order of the dimensions of {shape.bare}")
        found.append(shape.with_layout(layout(order)))
    return found


def _aliases(op: Operation) -> tuple[tuple[tuple[int, ...], int, tuple[int, ...]], ...]:
    found = []
    for alias in op.find("output_operand_aliases") or ():
        if not isinstance(alias, dict):
            op.wrong("output_operand_aliases", "a list of aliases")
        output, index = alias.get("output_tuple_indices", ()), alias.get("operand_tuple_indices", ())
        found.append((tuple(output), int(alias.get("operand_index", 0)), tuple(index)))
    return tuple(found)
