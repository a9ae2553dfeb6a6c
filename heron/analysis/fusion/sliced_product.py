"""Fusions of a product with slices of its operands: the product reads them where they lie in larger arrays.

A slice of neighbouring bytes, such as one matrix of a stack, is an address: nothing has to be copied. Where it begins
is known, or told by scalars when the program runs.
"""

from __future__ import annotations

from heron.analysis.fusion.roles import is_view
from heron.hlo.facts import has_start_operands, is_slice
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

KIND = "__sliced_product"
#: the backend config of such a fusion
CONFIG = f'{{"fusion_backend_config":{{"kind":"{KIND}"}}}}'


@dataclass(frozen=True, slots=True)
class Start:
    """A number that says where a slice begins: ``scalar``, at most ``last`` and at least 0, times ``bytes``."""

    scalar: Instruction
    last: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Place:
    """An array that lies in ``array``, from byte ``offset`` on; ``starts`` are added to that."""

    array: Instruction
    offset: int
    starts: tuple[Start, ...]


def is_sliced_product(i: Instruction) -> bool:
    """Whether `i` is a fusion of a product and slices of its operands."""
    return i.opcode == "fusion" and i.attrs["kind"] == "kCustom" and KIND in i.extras.get("backend_config", "")


def takes_block(i: Instruction) -> bool:
    """Whether a slice or dynamic-slice takes neighbouring bytes of its operand."""
    if not is_slice(i):
        return False
    source = i.operands[0].shape
    if source.element_type.bits % 8 or _order(source) != _order(i.shape):
        return False
    if not has_start_operands(i.op) and any(stride != 1 for _, _, stride in i.slice):
        return False
    order = _order(source)
    first = next((n for n, d in enumerate(order) if i.shape.dims[d] != 1), len(order))
    return all(i.shape.dims[d] == source.dims[d] for d in order[first + 1 :])


def place_of(i: Instruction) -> Place:
    """The place of the bytes of `i`: of a slice or a view, within what that is of; else `i` itself."""
    offset, starts = 0, list[Start]()
    while is_view(i) or takes_block(i):
        if not is_view(i):
            offset += _begin(i, starts)
        i = i.operands[0]
    return Place(i, offset, tuple(starts))


def _begin(i: Instruction, starts: list[Start]) -> int:
    """The bytes before a slice that are known; numbers that tell of others are added to `starts`."""
    source, steps = i.operands[0].shape, _byte_steps(i.operands[0].shape)
    if not has_start_operands(i.op):
        return sum(start * step for (start, _, _), step in zip(i.slice, steps, strict=True))
    offset = 0
    for scalar, whole, part, step in zip(i.operands[1:], source.dims, i.shape.dims, steps, strict=True):
        last = whole - part
        if scalar.opcode == "constant":
            offset += min(max(int(scalar.literal.array), 0), last) * step
        elif last:
            starts.append(Start(scalar, last, step))
    return offset


def _order(shape: Shape) -> list[int]:
    """The dimensions, the slowest in memory first."""
    return list(range(shape.rank)) if shape.layout is None else list(reversed(shape.layout.minor_to_major))


def _byte_steps(shape: Shape) -> list[int]:
    """Bytes from one index of each dimension to the next."""
    steps, step = [0] * shape.rank, shape.element_type.bits // 8
    for d in reversed(_order(shape)):
        steps[d] = step
        step *= shape.dims[d]
    return steps
