"""Shared by shape rules: checks that raise HLO010 with the numbers, and result shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from heron.hlo.ir import shape as shapes
from heron.hlo.ir.op import reject
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType

if TYPE_CHECKING:
    from heron.hlo.ir.computation import Computation
    from heron.hlo.ir.instruction import Instruction


def array(element_type: ElementType, dims: Sequence[int], dynamic: tuple[bool, ...] = ()) -> Shape:
    """A row-major array shape."""
    if dynamic and any(dynamic):
        return shapes.array(element_type, tuple(dims), None, dynamic).with_default_layout()
    return shapes.row_major(element_type, *dims)


def default(shape: Shape) -> Shape:
    """`shape` with row-major layouts."""
    layout = shape.layout
    if layout is not None and layout.is_default:
        return shape
    return shape.with_default_layout()


def given(i: Instruction, what: str = "the result shape must be given") -> Shape:
    """The shape the program states for `i`; rejects when it states none."""
    return stated(i) or reject(i, what)


def stated(i: Instruction) -> Shape | None:
    """The shape the program states for `i`; None while it is being inferred."""
    return i.shape


def attr(i: Instruction, name: str) -> Any:
    """A required attribute; rejects when it is missing."""
    value = i.attrs.get(name)
    if value is None:
        reject(i, f"attribute '{name}' is missing")
    return value


def need_arrays(i: Instruction, *operands: Shape) -> None:
    """Rejects tuple, token and opaque operands."""
    for n, s in enumerate(operands):
        if not s.is_array:
            reject(i, f"operand {n} must be an array", f"it is {s}")


def need_kind(i: Instruction, s: Shape, kinds: frozenset[str], n: int = 0) -> None:
    """Rejects an operand whose element type is of none of the `kinds`."""
    if s.element_type.kind not in kinds:
        reject(i, f"operand {n} has element type {s.element_type}", f"it must be {', '.join(sorted(kinds))}")


def need_same_type(i: Instruction, a: Shape, b: Shape) -> None:
    if a.element_type is not b.element_type:
        reject(i, "operand element types differ", f"{a.element_type} and {b.element_type}")


def need_same_dims(i: Instruction, a: Shape, b: Shape) -> None:
    if a.dims != b.dims:
        reject(i, "operand dimensions differ", f"{a} and {b}")


def need_rank(i: Instruction, s: Shape, rank: int, what: str) -> None:
    if s.rank != rank:
        reject(i, f"{what} must have rank {rank}", f"it is {s}")


def need_dims(i: Instruction, name: str, dims: Sequence[int], rank: int) -> None:
    """Rejects dimension numbers outside ``0 <= d < rank`` or given twice."""
    for d in dims:
        if not 0 <= d < rank:
            reject(i, f"{name}={_braces(dims)} names dimension {d}", f"the operand has rank {rank}")
    if len(dims) > 1 and len(set(dims)) != len(dims):
        reject(i, f"{name}={_braces(dims)} names a dimension twice")


def need_dim(i: Instruction, name: str, dim: int, rank: int) -> None:
    """Rejects a dimension number outside ``0 <= dim < rank``."""
    if not 0 <= dim < rank:
        reject(i, f"{name}={dim} is not a dimension", f"the rank is {rank}")


def signature(c: Computation) -> tuple[tuple[Shape, ...], Shape]:
    """Parameter shapes and result shape of a computation."""
    return tuple(p.shape for p in c.parameters), c.root.shape


def need_signature(
    i: Instruction, name: str, c: Computation, parameters: Sequence[Shape], result: Shape | None = None
) -> None:
    """Rejects a called computation whose parameters or result differ from what `i` needs (layouts apart)."""
    has, gives = signature(c)
    if len(has) != len(parameters):
        reject(i, f"{name}={c.name} takes {len(has)} parameters", f"{len(parameters)} are needed")
    for n, (p, want) in enumerate(zip(has, parameters, strict=True)):
        if p.bare is not want.bare:
            reject(i, f"parameter {n} of {name}={c.name} is {p.bare}", f"{want.bare} is needed")
    if result is not None and gives.bare is not result.bare:
        reject(i, f"{name}={c.name} returns {gives.bare}", f"{result.bare} is needed")


def _braces(values: Sequence[int]) -> str:
    return "{" + ",".join(map(str, values)) + "}"
