"""Gathers that read at one place, or at one place of each row: the form that `vmap` gives a slice at a common start."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import Builder, rule


@rule("gather")
def gather_at_one_place(i: Instruction, b: Builder) -> Instruction | None:
    """gather(x, [0 n; 1 n; ...]) == dynamic-slice(x, 0, n): each row of x is read at the same start

    rows = s32[6,1] iota(), iota_dimension=0
    m = s32[6,2] pad(rows, s32[] n), padding=0_0x0_1
    ROOT r = f32[6,1,4] gather(f32[8,9] x, m), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1},
      index_vector_dim=1, slice_sizes={1,4}
    ->
    zero = s32[] constant(0)
    s = f32[6,4] dynamic-slice(x, zero, n), dynamic_slice_sizes={6,4}
    ROOT r = f32[6,1,4] reshape(s)
    """
    x, m = i.operands
    rank, t = x.shape.rank, m.shape.element_type
    if m.shape.rank != 2 or i.index_vector_dim != 1 or i.offset_dims != tuple(range(1, rank + 1)):
        return None
    rows = m.shape.dims[0]
    if not rows or rows > 1 << (t.bits - t.is_signed):  # numbers of rows that do not fit the type are others
        return None
    columns = [_column(m, n, b) for n in range(m.shape.dims[1])]
    numbered = [d for d, c in zip(i.start_index_map, columns, strict=True) if c is m]
    if None in columns or len(numbered) > 1:
        return None
    sizes = list(i.slice_sizes)
    for d in numbered:
        if sizes[d] != 1 or x.shape.dims[d] < rows:
            return None
        sizes[d] = rows
    scalars = {d: c for d, c in zip(i.start_index_map, columns, strict=True) if c is not m}
    starts = [scalars.get(d) or b.scalar(t, 0) for d in range(rank)]
    cut = b.add("dynamic-slice", [x, *starts], x.shape.with_dims(tuple(sizes)), dynamic_slice_sizes=tuple(sizes))
    if not numbered:
        return b.broadcast(cut, i.shape.dims, range(1, rank + 1))
    return b.reshape(b.transpose(cut, [*numbered, *(d for d in range(rank) if d not in numbered)]), i.shape.dims)


def _column(m: Instruction, n: int, b: Builder) -> Instruction | None:
    """The scalar in all rows of column `n` of a matrix; the matrix itself if each row has its number there; or None."""
    source = m.operands[0] if m.operands else m
    match m.opcode:
        case "iota":
            return m if m.iota_dimension == 0 else b.scalar(m.shape.element_type, n)
        case "broadcast" if not source.shape.rank:
            return source
        case "broadcast" if m.dimensions == (1,):
            return b.reshape(b.slice(source, [(n, n + 1, 1)]), ())
        case "broadcast" if m.dimensions == (0,) and source.opcode == "iota":
            return m
        case "pad" if m.attrs["padding"][0] == (0, 0, 0) and not m.attrs["padding"][1][2]:
            at = n - m.attrs["padding"][1][0]
            if not 0 <= at < source.shape.dims[1]:
                return m.operands[1]
            found = _column(source, at, b)
            return m if found is source else found
        case "concatenate" if m.dimensions == (1,):
            for part in m.operands:
                if n < part.shape.dims[1]:
                    found = _column(part, n, b)
                    return m if found is part else found
                n -= part.shape.dims[1]
    return None
