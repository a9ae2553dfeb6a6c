"""The indices of gathers and scatters as one list: a row for each slice, a column for each dimension it is moved in."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.building import array, counting, reshape, scalar, transpose
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@dataclass(frozen=True)
class IndexList:
    """``indices`` [slice, column]; column n moves the slice in dimension ``dims[n]`` of the operand."""

    indices: Instruction
    dims: tuple[int, ...]


def index_list(
    starts: Instruction, vector: int, mapped: Sequence[int], batching: Sequence[int], starts_batching: Sequence[int]
) -> IndexList:
    """The list, batching dimensions being columns that count."""
    c, dims = home(starts), starts.shape.dims
    rest = [d for d in range(len(dims)) if d != vector]
    count = prod(dims[d] for d in rest)
    rows = transpose(starts, [*rest, vector]) if vector < len(dims) else starts
    indices = reshape(rows, (count, len(mapped)))
    if not batching:
        return IndexList(indices, tuple(mapped))
    indices = counting(indices, max(dims[d] for d in starts_batching))
    t = indices.shape.element_type
    columns = [indices]
    for d in starts_batching:
        at = c.add("iota", [], array(t, [dims[r] for r in rest]), iota_dimension=rest.index(d))
        columns.append(reshape(at, (count, 1)))
    wide = array(t, (count, len(mapped) + len(batching)))
    return IndexList(c.add("concatenate", columns, wide, dimensions=(1,)), (*mapped, *batching))


def starts_of(indices: Instruction, k: Instruction | int, dims: Sequence[int], rank: int) -> list[Instruction]:
    """Row k of a list as start indices of a slice of an operand of that rank."""
    c, t = home(indices), indices.shape.element_type
    columns = indices.shape.dims[1]
    if not isinstance(k, int):
        zero = scalar(c, k.shape.element_type, 0)
        indices = c.add("dynamic-slice", [indices, k, zero], dynamic_slice_sizes=(1, columns))
        k = 0
    found = {}
    for n, d in enumerate(dims):
        one = c.add("slice", [indices], array(t, (1, 1)), slice=((k, k + 1, 1), (n, n + 1, 1)))
        found[d] = reshape(one, ())
    return [found[d] if d in found else scalar(c, t, 0) for d in range(rank)]
