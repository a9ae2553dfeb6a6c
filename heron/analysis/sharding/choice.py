"""The shardings that an op is computed in: those for which devices send the fewest bytes.

The operands have shardings, the result should have one. Where they do not fit together, something moves: operands
before the op, the result after it, or partial results are reduced. `compute_shardings` compares the ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import TypeAlias

from heron.analysis.sharding.cost import moved_bytes, sent_part
from heron.analysis.sharding.projection import Projection, is_exact, joined, project
from heron.analysis.sharding.question import Asked, Question, question
from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.records import dataclass

#: the bytes sent that one byte of memory traffic is worth, of elementwise ops, most of which are fused, and of others
FUSED_MEMORY, MEMORY = 0.001, 0.05
#: the bytes sent that one product with its sum is worth: on a GPU in f32; a CPU would rather send ten times as many
PRODUCT = 0.02
#: the bytes sent that one collective more is worth
LATENCY = 1.0

#: the atoms of every factor of a rule
Split: TypeAlias = tuple[Axes, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The shardings that an op is computed in.

    Attributes:
        operands: the sharding each operand array is brought to.
        results: the sharding of each result array as it comes out, before it is brought to the one it should have.
            Partial sums have unreduced atoms.
        reduced: the atoms along which results are partial.
        reducer: the opcode that combines partial results; "" for a general computation, or when nothing is partial.
        split: the atoms of each factor of the rule.
        sent: the bytes that a device sends to reshard each operand, then each result.
        cost: these, and what combining partial results, collectives, memory traffic and repeated work are worth in
            bytes.
    """

    operands: tuple[TensorSharding, ...]
    results: tuple[TensorSharding, ...]
    reduced: Axes = ()
    reducer: str = ""
    split: Split = ()
    sent: tuple[float, ...] = ()
    cost: float = 0.0

    @property
    def own_cost(self) -> float:
        """The cost without that of bringing the operands."""
        return self.cost - sum(self.sent[: len(self.operands)])


def compute_shardings(
    i: Instruction,
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    mesh: AtomicMesh,
    *,
    rule: OpRule | None = None,
    asked: Asked | None = None,
    moves: bool = False,
    keeps_sums: bool = True,
) -> Choice:
    """The shardings in which op `i` is computed.

    Args:
        i: the op, with global shapes.
        operands: the sharding that each operand array has; unreduced atoms mark partial sums. None for one of which
            every device can make any part.
        results: the sharding that each result array should have; None where any will do.
        mesh: the mesh of the shardings.
        rule: another rule than that of the op.
        asked: `Asked.of(i)`, for a caller that has it.
        moves: whether more is computed than the same op on parts: factors along which data moves, positional ones and
            those reduced by a general computation may be split.
        keeps_sums: whether a linear op may be computed on partial sums.

    An op without a rule is computed on whole arrays. The choice is the same for the same arguments.
    """
    asked = asked or Asked.of(i, rule)
    if asked is None:
        return _whole(i, operands, results)
    return _choose(question(i, asked, operands, results, mesh, moves, keeps_sums))


def alternatives(
    i: Instruction,
    operands: Sequence[TensorSharding | None],
    results: Sequence[TensorSharding | None],
    mesh: AtomicMesh,
    count: int,
) -> tuple[Choice, ...]:
    """Other ways to compute op `i`, which has a rule: at most `count`, the cheapest first.

    For the arguments see `compute_shardings`; data may move.
    """
    asked = Asked.of(i)
    assert asked is not None
    return _ranked(question(i, asked, operands, results, mesh, True, True, True), count)


def _whole(
    i: Instruction, operands: Sequence[TensorSharding | None], results: Sequence[TensorSharding | None]
) -> Choice:
    given = [s.manual for s in (*operands, *results) if s is not None]
    ranks = [s.rank for shape in (*(o.shape for o in i.operands), i.shape) for _, s in shape.leaves() if s.is_array]
    wholes = [TensorSharding.whole(rank, given[0] if given else ()) for rank in ranks]
    return Choice(tuple(wholes[: len(operands)]), tuple(wholes[len(operands) :]))


@lru_cache(maxsize=1 << 14)
def _choose(q: Question) -> Choice:
    search = _Search(q)
    same = search.matching()
    if same is not None:
        return search.answer(same, ())
    ways = [search.best(kept) for kept in (*q.groups, ())]
    return min(ways, key=lambda choice: choice.cost)


@lru_cache(maxsize=1 << 12)
def _ranked(q: Question, count: int) -> tuple[Choice, ...]:
    search = _Search(q)
    found: dict[tuple[TensorSharding, ...], Choice] = {}
    for kept in (*q.groups, ()):
        best = search.best(kept)
        for choice in sorted([best, *search.near(best, kept)], key=lambda choice: choice.cost):
            found.setdefault(choice.results, choice)
    return tuple(sorted(found.values(), key=lambda choice: choice.cost)[:count])


class _Search:
    """The search for the cheapest split of the factors.

    It begins with the splits that single arrays suggest, each completed by what fits of the others, and then changes
    one factor at a time as long as that is cheaper.
    """

    def __init__(self, q: Question) -> None:
        self.q, self.rule, self.mesh = q, q.op.rule, q.mesh
        self.shardings = (*q.has, *q.wants)
        self.manual = next((s.manual for s in self.shardings if s is not None), frozenset[int]())
        nothing = Projection(((),) * len(self.rule.factors), ())
        self.projected = [
            nothing if s is None else project(self.rule, n, s, self.mesh) for n, s in enumerate(self.shardings)
        ]
        self.splittable = [self._is_splittable(n) for n in range(len(self.rule.factors))]
        self.options = [self._proposed(n) for n in range(len(self.rule.factors))]
        order = range(len(self.shardings))
        self.by_size = sorted(order, key=lambda n: -prod(q.op.arrays[n][0]) * q.op.arrays[n][1])

    def _is_splittable(self, n: int) -> bool:
        f = self.rule.factors[n]
        is_lost = f.kind is not FactorKind.REDUCTION and all(a < len(self.q.has) for a, _ in self.rule.places[n])
        if f.kind is FactorKind.NEED_REPLICATION or is_lost:
            return False
        needs_more = f.kind is FactorKind.PERMUTATION or f.is_positional
        needs_more = needs_more or (f.kind is FactorKind.REDUCTION and not f.reducer)
        return self.q.moves or not needs_more

    def _proposed(self, n: int) -> list[Axes]:
        """The atoms that arrays have for a factor, and whole axes of the mesh that these begin with, () first."""
        found: dict[Axes, None] = {(): None}
        for projection in self.projected:
            axes = projection.axes[n]
            of = [self.mesh.axes[atom].number for atom in axes]
            found.update((axes[:k], None) for k in range(1, len(axes)) if of[k - 1] != of[k])
            found[axes] = None
            found.update((summed, None) for summed in self._scattered(projection, axes))
        return list(found)

    def _scattered(self, projection: Projection, axes: Axes) -> Iterator[Axes]:
        """The atoms of a factor with those of the sums of a shared operand: a reduce-scatter brings that."""
        for each in self.q.shared:
            rest = tuple(sorted(each.difference(*projection.axes)))
            if rest:
                yield (*axes, *rest)

    # -- candidates --------------------------------------------------------------------------------------------------
    def matching(self) -> Split | None:
        """The split that all arrays have already, so that nothing moves."""
        if any(s is not None and s.unreduced for s in self.shardings) or any(any(p.overflow) for p in self.projected):
            return None
        split: list[Axes] = []
        for n, places in enumerate(self.rule.places):
            has = {self.projected[array].axes[n] for array, _ in places if self.shardings[array] is not None}
            if len(has) > 1:
                return None
            first = has.pop() if has else ()
            if first and (not self.splittable[n] or self.rule.factors[n].kind is FactorKind.REDUCTION):
                return None
            split.append(first)
        return tuple(split) if self._fits(split, frozenset()) else None

    def best(self, kept: tuple[int, ...]) -> Choice:
        """The cheapest way with these operands as partial sums."""
        sums = self._sums(kept)
        seeds = [self._seed([n, *self.by_size], sums) for n in range(len(self.shardings))]
        seeds.append(((),) * len(self.rule.factors))
        least = min((self.answer(split, kept) for split in dict.fromkeys(seeds)), key=lambda choice: choice.cost)
        for _ in range(len(self.rule.factors) + 1):
            found = min(self.near(least, kept), key=lambda choice: choice.cost, default=least)
            if found.cost >= least.cost:
                break
            least = found
        return least

    def near(self, choice: Choice, kept: tuple[int, ...]) -> Iterator[Choice]:
        """The ways that split one factor otherwise."""
        for split in self._neighbours(choice.split, self._sums(kept)):
            yield self.answer(split, kept)

    def _sums(self, kept: tuple[int, ...]) -> frozenset[int]:
        """The atoms along which all kept operands are partial."""
        partial = [s.unreduced for n in kept if (s := self.q.has[n]) is not None]
        return frozenset.intersection(*partial) if partial else frozenset()

    def _seed(self, order: Sequence[int], sums: frozenset[int]) -> Split:
        """The factors' atoms of the first array, then what fits of the next ones."""
        split: list[Axes] = [()] * len(self.rule.factors)
        for array in order:
            for n, axes in enumerate(self.projected[array].axes):
                if axes and not split[n]:
                    self._put(split, n, axes, sums)
        return tuple(split)

    def _put(self, split: list[Axes], n: int, axes: Axes, sums: frozenset[int]) -> None:
        """Split factor `n` by as many of the atoms, from the first one on, as are free and give exact parts."""
        if not self.splittable[n]:
            return
        used = {atom for m, other in enumerate(split) if m != n for atom in other} | sums
        free = next((k for k, atom in enumerate(axes) if atom in used), len(axes))
        for length in range(free, 0, -1):
            split[n] = axes[:length]
            if is_exact(self.rule, split, self.mesh):
                return
        split[n] = ()

    def _neighbours(self, split: Split, sums: frozenset[int]) -> Iterator[Split]:
        """Splits with other atoms for one factor; other factors give up those atoms."""
        for n, options in enumerate(self.options):
            for axes in (*options, *self._moved(split, n)):
                if axes == split[n] or (axes and not self.splittable[n]):
                    continue
                changed = [other if m == n else _without(other, axes) for m, other in enumerate(split)]
                changed[n] = axes
                if self._fits(changed, sums):
                    yield tuple(changed)

    def _moved(self, split: Split, n: int) -> Iterator[Axes]:
        """The atoms of factor `n` and those of a factor that must be whole, which may move here where there is room."""
        f = self.rule.factors[n]
        if not self.splittable[n] or f.kind is not FactorKind.PASS_THROUGH:
            return
        for m, options in enumerate(self.options):
            if self.splittable[m]:
                continue
            for axes in options[1:]:
                both = (*split[n], *(a for a in axes if a not in split[n]))
                if f.size % self.mesh.size(both) == 0:
                    yield both

    def _fits(self, split: Sequence[Axes], sums: frozenset[int]) -> bool:
        used = [atom for axes in split for atom in axes]
        apart = len(set(used)) == len(used) and sums.isdisjoint(used)
        return apart and is_exact(self.rule, split, self.mesh)

    # -- cost --------------------------------------------------------------------------------------------------------
    def answer(self, split: Split, kept: tuple[int, ...]) -> Choice:
        """The shardings of all arrays for a split of the factors, and the cost."""
        sums = self._sums(kept)
        factors = self.rule.factors
        summed = [n for n, f in enumerate(factors) if f.kind is FactorKind.REDUCTION and split[n]]
        reduced = (*(atom for n in summed for atom in split[n]), *sorted(sums))
        reducer = factors[summed[0]].reducer if summed else "add" if sums else ""
        unreduced = reduced if reducer == "add" else ()
        operands = tuple(
            TensorSharding.closed(joined(dims, split), sums if n in kept else (), self.manual)
            for n, dims in enumerate(self.rule.operands)
        )
        results = tuple(TensorSharding.closed(joined(d, split), unreduced, self.manual) for d in self.rule.results)
        sent = tuple(self._sent(n, s) for n, s in enumerate((*operands, *results)))
        cost = sum(sent) + LATENCY * sum(map(bool, sent)) + self._work(split, operands, results)
        if reduced and reducer != "add":
            partial = [self._local(len(operands) + n, s) for n, s in enumerate(results)]
            elements = prod(self.mesh.local_dims(self.q.op.arrays[len(operands)][0], results[0]))
            cost += LATENCY + self._combining(reducer, reduced, elements) * sum(partial)
        return Choice(operands, results, reduced, reducer, split, sent, cost)

    def _sent(self, n: int, computed: TensorSharding) -> float:
        """Bytes sent between the sharding that array `n` has or should have and that in which it is computed."""
        given = self.shardings[n]
        if given is None:
            return 0.0
        dims, width = self.q.op.arrays[n]
        source, target = (given, computed) if n < len(self.q.has) else (computed, given)
        return moved_bytes(self.mesh.sizes, self.mesh.weights, dims, width, source, target)

    def _combining(self, reducer: str, axes: Axes, elements: int) -> float:
        """Bytes sent for each byte of partial results: an all-reduce; before a general computation a gather, or, where
        each device can combine its own piece of the `elements`, an exchange of pieces and a gather of its results."""
        sizes, weights, count = self.mesh.sizes, self.mesh.weights, self.mesh.size(axes)
        if reducer:
            return sent_part("all-reduce", sizes, weights, axes)
        gathered = sent_part("all-gather", sizes, weights, axes)
        if elements % count:
            return count * gathered
        return min(count * gathered, gathered + sent_part("all-to-all", sizes, weights, axes))

    def _local(self, n: int, sharding: TensorSharding) -> float:
        dims, width = self.q.op.arrays[n]
        return width * prod(self.mesh.local_dims(dims, sharding))

    def _work(self, split: Split, operands: tuple[TensorSharding, ...], results: tuple[TensorSharding, ...]) -> float:
        """The worth in bytes of memory traffic and products."""
        cost = (FUSED_MEMORY if self.q.op.is_elementwise else MEMORY) * sum(
            self._local(n, s) for n, s in enumerate((*operands, *results))
        )
        if self.q.op.is_product:
            steps = zip(self.rule.factors, split, strict=True)
            cost += PRODUCT * prod(-(-f.size // self.mesh.size(axes)) for f, axes in steps)
        return cost


def _without(axes: Axes, taken: Axes) -> Axes:
    """The atoms before the first one of `taken`."""
    return axes[: next((n for n, atom in enumerate(axes) if atom in taken), len(axes))]
