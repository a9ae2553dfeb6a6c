"""collective-major-dimension: collectives that cut or join arrays along their first dimension, where rows are many."""

from __future__ import annotations

from math import prod

from heron.hlo.facts import opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import AttrKind, Trait
from heron.hlo.ir.shape import Shape, tuple_
from heron.passes.collectives.model.places import group_size
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, transpose
from heron.records import dataclass

#: collectives along a dimension that are not begun by an op of their own
_ALONG = opcodes(
    lambda op: (
        Trait.COLLECTIVE in op.traits
        and "dimensions" in op.attributes
        and op.attributes["dimensions"].kind is AttrKind.INTS
        and not op.done
    )
)


@register
@dataclass(frozen=True)
class CollectiveMajorDimension(Pass):
    """Moves the dimension along which an all-gather, a reduce-scatter or an all-to-all works to the front.

    NCCL takes pieces that lie in one place. Pieces of an inner dimension are a row in each of the dimensions before it,
    and each row is a call: up to `rows` of them cost less than a transpose.

    Args:
        rows: the most calls for one array.

    HloModule example, replica_count=2

    ROOT g = f32[20,6] all-gather(f32[20,3] x), dimensions={1}
    ->
    HloModule example, replica_count=2

    one = f32[1,20,3] reshape(x)
    g = f32[2,20,3] all-gather(one), dimensions={0}
    t = f32[20,2,3] transpose(g), dimensions={1,0,2}
    ROOT r = f32[20,6] reshape(t)
    """

    name = "collective-major-dimension"
    aliases = ("all-gather-major-dimension-rewriter",)
    constraints = (
        Constraint("collective-reduction-expander", "collective-major-dimension", "what that leaves is in rows, too"),
    )

    rows: int = 8

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode not in _ALONG or i.attrs.get("dimensions") is None or i.attrs.get("constrain_layout"):
                    continue
                (dim,) = i.dimensions
                rows = max(prod(o.shape.dims[:dim]) for o in i.operands)
                size = group_size(i, module) if rows > self.rows and _is_plain(i) else None
                if size is None:
                    continue
                _move(i, dim, size)
                ctx.decide(True, f"{rows} rows would be as many calls", subject=i.name)
                changed = True
        return changed


def _is_plain(i: Instruction) -> bool:
    """Whether its arrays have elements and sizes that are known."""
    shapes = [s for o in (*i.operands, i) for _, s in o.shape.leaves()]
    return all(prod(s.dims) and not any(s.dynamic) for s in shapes)


def _move(i: Instruction, dim: int, size: int) -> None:
    c, shapes = i.parent, i.shape.tuple_shapes if i.shape.tuple_shapes is not None else (i.shape,)
    assert c is not None
    given: list[Instruction] = []
    made: list[Shape] = []
    for x, shape in zip(i.operands, shapes, strict=True):
        before, after = x.shape.dims[dim], shape.dims[dim]
        piece = min(before, after) if before != after else before // size
        given.append(_pieces_first(x, dim, piece))
        dims = given[-1].shape.dims
        made.append(array(x.shape.element_type, (after // piece, *dims[1:])))
    attrs = {**i.attrs, "dimensions": (0,)}
    if i.shape.tuple_shapes is None:
        c.replace(i, _pieces_back(c.add(i.opcode, given, made[0], like=i, **attrs), shapes[0], dim))
        return
    moved = c.add(i.opcode, given, tuple_(tuple(made)), like=i, **attrs)
    parts = [c.add("get-tuple-element", [moved], s, like=i, index=n) for n, s in enumerate(made)]
    results = [_pieces_back(part, shape, dim) for part, shape in zip(parts, shapes, strict=True)]
    c.replace(i, c.add("tuple", results, i.shape, like=i))


def _pieces_first(x: Instruction, dim: int, piece: int) -> Instruction:
    """An array as pieces of dimension `dim`, numbered by a new first dimension."""
    dims = x.shape.dims
    if dims[dim] == piece:
        return reshape(x, (1, *dims))
    cut = reshape(x, (*dims[:dim], dims[dim] // piece, piece, *dims[dim + 1 :]))
    return transpose(cut, (dim, *(d for d in range(len(dims) + 1) if d != dim)))


def _pieces_back(x: Instruction, shape: Shape, dim: int) -> Instruction:
    """The array of that shape whose pieces are these."""
    rank = len(x.shape.dims)
    if x.shape.dims[0] == 1:
        return reshape(x, shape.dims)
    return reshape(transpose(x, (*range(1, dim + 1), 0, *range(dim + 1, rank))), shape.dims)
