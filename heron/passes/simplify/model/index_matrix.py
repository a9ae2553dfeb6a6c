"""Shared by gather-simplifier and scatter-simplifier: indices of any form as one matrix of index vectors."""

from __future__ import annotations

from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.building import array, counting, reshape, transpose


def index_matrix(
    indices: Instruction, vector_dim: int, batching: tuple[int, ...], like: Instruction
) -> tuple[Instruction, tuple[int, ...]]:
    """`indices` as a matrix with an index vector in each row, and the dimensions the rows were spread over.

    `vector_dim` is the dimension that holds a vector; the rank of `indices` when vectors have one, implied, component.
    For each of the dimensions `batching` the vectors get a component in front: the position along that dimension, in a
    wider type where that of the indices does not hold the last one.
    """
    c = indices.parent
    assert c is not None
    rank, dims = indices.shape.rank, indices.shape.dims
    if vector_dim == rank:
        indices = reshape(indices, (*indices.shape.dims, 1))
    else:
        indices = transpose(indices, [*(d for d in range(rank) if d != vector_dim), vector_dim])
    rows = indices.shape.dims[:-1]
    if batching:
        indices = counting(indices, max(dims[d] for d in batching))
        one = array(indices.shape.element_type, (*rows, 1))
        places = [d - (d > vector_dim) for d in batching]
        positions = [c.add("iota", [], one, like=like, iota_dimension=d) for d in places]
        width = indices.shape.dims[-1] + len(positions)
        indices = c.add(
            "concatenate",
            [*positions, indices],
            array(indices.shape.element_type, (*rows, width)),
            like=like,
            dimensions=(len(rows),),
        )
    return reshape(indices, (prod(rows), indices.shape.dims[-1])), rows
