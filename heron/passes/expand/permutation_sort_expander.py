"""permutation-sort-expander: what is sorted by a permutation is put in its places."""

from __future__ import annotations

from heron.hlo.ir import shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType
from heron.passes.framework.base import Constraint
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class PermutationSortExpander(Expander):
    """Scatters what would be sorted by the positions that another sort has brought along: each place comes once.

    Sorting a permutation together with positions is how a permutation is inverted, as in the rank of every element.

    by_value {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = s32[] parameter(2)
      d = s32[] parameter(3)
      ROOT l = pred[] compare(a, b), direction=LT
    }

    by_place {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      c = s32[] parameter(2)
      d = s32[] parameter(3)
      ROOT l = pred[] compare(a, b), direction=LT
    }

    it = s32[8] iota(), iota_dimension=0
    s = (f32[8], s32[8]) sort(f32[8] x, it), dimensions={0}, to_apply=by_value
    p = s32[8] get-tuple-element(s), index=1
    ROOT r = (s32[8], s32[8]) sort(p, it), dimensions={0}, to_apply=by_place
    ->
    replace {
      a = s32[] parameter(0)
      ROOT b = s32[] parameter(1)
    }

    places = s32[8] iota(), iota_dimension=0
    zero = s32[] constant(0)
    zeros = s32[8] broadcast(zero), dimensions={}
    t = s32[8] scatter(zeros, p, it), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, unique_indices=true, to_apply=replace
    ROOT r = (s32[8], s32[8]) tuple(places, t)
    """

    name = "permutation-sort-expander"
    opcodes = frozenset({"sort"})
    constraints = (
        Constraint(
            "permutation-sort-expander",
            "stable-sort-expander",
            "a comparison that also decides between equals no longer looks like one of places",
        ),
    )

    def matches(self, i: Instruction) -> bool:
        key = _key(i.to_apply)
        return key is not None and _is_permutation(i.operands[key], i.dimensions[0])

    def expand(self, i: Instruction) -> Instruction:
        c = home(i)
        key = _key(i.to_apply)
        assert key is not None
        places, (d,) = i.operands[key], i.dimensions
        others = tuple([n for n in range(places.shape.rank) if n != d])
        parts = []
        for n, x in enumerate(i.operands):
            of = array(x.shape.element_type, x.shape.dims)
            if n == key:
                parts.append(c.add("iota", [], of, like=i, iota_dimension=d))
                continue
            scattered = c.add(
                "scatter",
                [splat(c, of, 0), places, x],
                of,
                like=i,
                update_window_dims=(),
                inserted_window_dims=(d,),
                scatter_dims_to_operand_dims=(d,),
                input_batching_dims=others,
                scatter_indices_batching_dims=others,
                index_vector_dim=places.shape.rank,
                unique_indices=True,
                to_apply=_replacing(c, x.shape.element_type),
            )
            parts.append(scattered)
        return c.add("tuple", parts, like=i) if i.shape.is_tuple else parts[0]


def _key(comparator: Computation) -> int | None:
    """The operand that a sort orders by, smallest first; None where it is not just one."""
    root = comparator.root
    if root.opcode != "compare" or any(o.opcode != "parameter" for o in root.operands):
        return None
    left, right = [o.attrs["number"] for o in root.operands]
    if root.direction == "GT":
        left, right = right, left
    return left // 2 if root.direction in ("LT", "GT") and left % 2 == 0 and right == left + 1 else None


def _is_permutation(x: Instruction, d: int) -> bool:
    """Whether `x` holds each position along dimension `d` once: positions that a sort along it has moved."""
    if x.opcode != "get-tuple-element" or x.operands[0].opcode != "sort":
        return False
    t, s = x.shape.element_type, x.operands[0]
    if not t.is_integer or x.shape.dims[d] > 1 << (t.bits - t.is_signed):
        return False  # positions must be indices, and not come again where numbers wrap
    moved = s.operands[x.attrs["index"]]
    return moved.opcode == "iota" and moved.attrs["iota_dimension"] == d and s.dimensions == (d,)


def _replacing(c: Computation, t: ElementType) -> Computation:
    """A computation of two scalars that gives the second."""
    assert c.module is not None
    made = Computation("replace")
    parameters = [made.add_parameter(n, shape.scalar(t)) for n in range(2)]
    made.root = parameters[1]
    return c.module.add_computation(made)
