"""Number of reads of each element: the recomputation when its producer is fused into the readers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf, prod

from heron.analysis.cost.work import first_array
from heron.analysis.fusion.prefix_scan import is_long_scan
from heron.analysis.fusion.small_products import is_small_product
from heron.hlo.facts import root_parts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction

#: a scalar's computation is taken out of the loops around it: it counts as this many evaluations
HOISTED = 64.0


def evaluations(c: Computation, keeps: bool = False) -> dict[Instruction, float]:
    """For each instruction of a fused computation how many of its elements one run computes.

    More than it has when several readers compute the same element each for itself, fewer when only part is read.
    ``keeps``: a reduction has at hand what is computed of each element it walks over, as on a GPU.
    """
    counts: dict[Instruction, float] = {}
    guarded: set[Instruction] = set()
    roots = set(root_parts(c))
    for i in reversed(c.post_order()):
        if i is c.root and i.opcode == "tuple":
            continue
        found = evaluations_of(i, counts, keeps, guarded=guarded)
        counts[i] = max(found, float(first_array(i).num_elements) if i in roots else 0.0)
        if i not in roots and is_guarded(i, i.users, guarded):
            guarded.add(i)
    return counts


def is_guarded(i: Instruction, users: Iterable[Instruction], guarded: Collection[Instruction]) -> bool:
    """Whether `i` is computed only where a condition holds: for users that show a part of it, or are ``guarded``.

    Nothing there is taken out of a loop: LLVM does not know that it may be computed when the condition does not hold.
    """
    return all(user in guarded or _shows_part(user, i) for user in users)


def _shows_part(user: Instruction, i: Instruction) -> bool:
    return _READS.get(user.opcode) is _of_part and i is not user.operands[-1] and user.shape.rank > 1


def evaluations_of(
    i: Instruction,
    counts: Mapping[Instruction, float],
    keeps: bool = False,
    users: Iterable[Instruction] | None = None,
    lanes: float = 1.0,
    guarded: Collection[Instruction] = (),
) -> float:
    """The number of elements of `i` that its users compute, given the numbers of their own (`counts`).

    Users that read it at their own index share one computation; each other way of reading adds its own. ``users``:
    those of its users that have counts, for who knows them. ``lanes``: as in `reads`. ``guarded``: users of which
    nothing is taken out of loops (`is_guarded`).
    """
    own = other = 0.0
    for user in i.users if users is None else users:
        n = counts.get(user)
        if n is None:
            continue
        side_by_side = inf if user in guarded else lanes
        if in_place(user, i, n, keeps):
            own = max(own, n if user.op.is_elementwise else n * reads(user, user.operands.index(i), side_by_side))
        else:
            other += n * sum(reads(user, k, side_by_side) for k in user.places_of(i))
    total = own + other
    return min(total, HOISTED) if i.shape.is_array and i.shape.num_elements == 1 else total


def in_place(user: Instruction, i: Instruction, n: float, keeps: bool) -> bool:
    """Whether `user`, `n` elements of which are computed, reads an element of `i` where others read the same one: at
    its own index, or as it walks over each of them once."""
    if user.opcode == "reduce":
        return keeps and n <= first_array(user).num_elements and i not in user.operands[len(user.operands) // 2 :]
    return user.op.is_elementwise and user.shape.num_elements == i.shape.num_elements


def reads(user: Instruction, operand: int, lanes: float = 1.0) -> float:
    """The number of elements of that operand that one element of `user` needs.

    ``lanes``: elements that take as long together as one by itself, outside the innermost loop.
    """
    if user.opcode == "broadcast":
        return _of_broadcast(user, lanes)
    rule = _READS.get(user.opcode)
    return 1.0 if rule is None else rule(user, operand)


def _of_broadcast(user: Instruction, lanes: float) -> float:
    """A value that does not change along the innermost loop is computed outside it."""
    dims = user.shape.dims
    if not dims or len(dims) - 1 in (user.attrs.get("dimensions") or ()):
        return 1.0
    return min(1.0, lanes / max(1, dims[-1]))


def _per_element(user: Instruction, operand: int) -> float:
    """Elements of an operand for each element of the result."""
    return user.operands[operand].shape.num_elements / max(1, first_array(user).num_elements)


def _of_part(user: Instruction, operand: int) -> float:
    return min(1.0, _per_element(user, operand))


def _of_reduce(user: Instruction, operand: int) -> float:
    return max(1.0, _per_element(user, operand))


def _of_window(user: Instruction, operand: int) -> float:
    if user.operands[operand].shape.is_scalar or is_long_scan(user):
        return 1.0
    return float(prod(w.size for w in user.window))


def _of_dot(user: Instruction, operand: int) -> float:
    if not is_small_product(user):  # computed in tiles, not element by element
        return 1.0
    return float(prod(user.operands[0].shape.dims[d] for d in user.attrs.get("lhs_contracting_dims") or ()))


def _of_gather(user: Instruction, operand: int) -> float:
    return float(len(user.attrs.get("start_index_map") or (0,))) if operand == 1 else 1.0


def _of_update(user: Instruction, operand: int) -> float:
    return _per_element(user, 1)


def _of_scatter(user: Instruction, operand: int) -> float:
    is_index = operand == len(user.operands) // 2
    reads_ = len(user.attrs.get("scatter_dims_to_operand_dims") or (0,)) if is_index else 1
    return _per_element(user, -1) * reads_


#: ops of which an element needs another number of an operand's elements than one
_READS: dict[str, Callable[[Instruction, int], float]] = {
    "concatenate": _of_part,
    "pad": _of_part,
    "reduce": _of_reduce,
    "reduce-window": _of_window,
    "dot": _of_dot,
    "gather": _of_gather,
    "dynamic-update-slice": _of_update,
    "scatter": _of_scatter,
}
