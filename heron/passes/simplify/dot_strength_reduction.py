"""dot-strength-reduction: small products with a vector are kernels, not library calls."""

from __future__ import annotations

from math import prod

from heron.analysis.fusion.small_products import MOST_OF_ROW, MOST_SUMMED, TINY_VECTOR
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, PRED, ElementType
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, convert, scalar, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DotStrengthReduction(Expander):
    """Writes dots of a vector with another or with a small matrix as products of elements and their sum.

    Such a dot reads each element of the matrix once, so a library has nothing to gain, while a reduction can have what
    comes before and after it inside its kernel. A matrix is small with fewer than ``most`` elements. Products of small
    floats are made and summed in f32, as by dots; HLO leaves the order of a dot's sum open. With ``made`` only where
    the reduction reads what the matrix is made from, by ops on single elements or a slice, so that no matrix is stored,
    and for complex numbers; sums of up to 16 products are left to kernels of small products and to libraries, but for
    those along rows of 9 and more in batches. Numbers narrower than 32 bits are always widened in a reduction:
    libraries multiply them in tiles, nearly empty here.

    ROOT r = f32[5] dot(f32[4] x, f32[4,5] y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    ->
    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[4,5] broadcast(x), dimensions={0}
    m = f32[4,5] multiply(p, y)
    zero = f32[] constant(0)
    ROOT r = f32[5] reduce(m, zero), dimensions={0}, to_apply=sum
    """

    name = "dot-strength-reduction"
    opcodes = frozenset({"dot"})
    most: int = 10_000_000
    made: bool = False

    def matches(self, i: Instruction) -> bool:
        if len(i.operands) != 2 or i.attrs.get("algorithm") or not i.lhs_contracting_dims or _summed_in(i) is None:
            return False
        n = _vector(i)
        if n is None or max(x.shape.num_elements for x in i.operands) >= self.most:
            return False
        if not self.made:
            return True
        if all(o.shape.element_type.is_float and o.shape.element_type.bits < 32 for o in i.operands):
            return True
        count = prod(i.operands[0].shape.dims[d] for d in i.lhs_contracting_dims)
        if _has_short_rows(i, 1 - n):
            return True
        return count > MOST_SUMMED and (i.shape.element_type.is_complex or _is_made(i.operands[1 - n]))

    def expand(self, i: Instruction) -> Instruction:
        c, n = home(i), _vector(i)
        t = _summed_in(i)
        assert n is not None and t is not None and c.module is not None
        vector, matrix = (convert(i.operands[k], t) for k in (n, 1 - n))
        batch, summed = (
            [i.attrs.get(f"{s}_{kind}_dims", ()) for s in ("lhs", "rhs")] for kind in ("batch", "contracting")
        )
        # the vector's dimensions become those of the matrix that they go with
        ordered = transpose(vector, (*batch[n], *summed[n]))
        places = (*batch[1 - n], *summed[1 - n])
        order = sorted(range(len(places)), key=lambda k: places[k])
        spread = c.add("broadcast", [transpose(ordered, order)], matrix.shape, like=i, dimensions=tuple(sorted(places)))
        product = spread * matrix if n == 0 else matrix * spread
        left = [d for d in range(matrix.shape.rank) if d not in summed[1 - n]]
        dims = [matrix.shape.dims[d] for d in left]
        add = applied(c.module, "add", t)
        total = c.add(
            "reduce", [product, scalar(c, t, 0)], array(t, dims), like=i,
            dimensions=tuple(sorted(summed[1 - n])), to_apply=add,
        )  # fmt: skip
        # a dot's result has its batch dimensions first, in their order, then the matrix's others
        wanted = [*batch[1 - n], *(d for d in left if d not in batch[1 - n])]
        return convert(transpose(total, [left.index(d) for d in wanted]), i.shape.element_type)


def _vector(i: Instruction) -> int | None:
    """The operand that has only batch and summed dimensions."""
    known = len(i.attrs.get("lhs_batch_dims", ())) + len(i.lhs_contracting_dims)
    return next((n for n, x in enumerate(i.operands) if x.shape.rank == known), None)


def _is_made(matrix: Instruction) -> bool:
    """Whether a kernel that reads `matrix` once may compute it instead."""
    if len(matrix.users) != 1 or matrix.is_root:
        return False
    return matrix.op.is_elementwise or matrix.opcode == "slice"


def _summed_in(i: Instruction) -> ElementType | None:
    """A type that products and sums are no worse in than the dot's; None for types that go together in no such way."""
    types = {x.shape.element_type for x in (i, *i.operands)}
    if all(t.is_float for t in types):
        return F64 if F64 in types else F32
    if all(t.is_integer and t.bits >= 8 for t in types) or types == {i.shape.element_type}:
        return None if PRED in types else i.shape.element_type
    return None


def _has_short_rows(i: Instruction, matrix: int) -> bool:
    """Whether `i` is a batch of products, each so small that a kernel computes it, of matrices with rows that fill a
    vector: they are summed along the rows, not element by element."""
    x, summed = i.operands[matrix].shape, (i.lhs_contracting_dims, i.rhs_contracting_dims)[matrix]
    batch = prod(i.operands[0].shape.dims[d] for d in i.lhs_batch_dims or ())
    if batch == 1 or summed != (x.rank - 1,) or i.shape.element_type not in (F32, F64):
        return False
    return MOST_OF_ROW < x.dims[-1] <= MOST_SUMMED and x.num_elements <= batch * TINY_VECTOR
