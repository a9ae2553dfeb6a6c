"""The partitioned form of most ops: the same op on parts, in the shardings that its rule and its operands suggest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from heron.analysis.sharding.choice import compute_shardings
from heron.analysis.sharding.local import local_attributes
from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules import rule_of
from heron.hlo.facts import identity
from heron.hlo.ir.computation import remap_calls
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition.part import Part
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


def partition(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The parts of the results of an op that is computed on parts of its operands.

    An op without a rule is computed whole, on every device.
    """
    rule = rule_of(i)
    if rule is None:
        return replicated(p, i, operands)
    choice = in_place(p, i, rule, operands) or chosen(p, i, operands, rule=rule)
    taken = clean(p, rule, choice.operands) if choice.reduced else choice.operands
    return local(p, i, taken, choice.results, choice.reduced, choice.reducer)


def replicated(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The op computed on whole operands."""
    wholes = [p.whole(part) for part in operands]
    manual = p.manual(i, operands)
    return local(p, i, wholes, [TensorSharding.whole(s.rank, manual) for _, s in i.shape.leaves()])


@dataclass(frozen=True, slots=True)
class Chosen:
    """An op ready to be computed.

    Attributes:
        operands: the parts in the shardings that the op is computed in.
        results: the shardings of the leaves of its result, with the atoms along which they are partial sums.
        reduced: the atoms along which results are partial.
        reducer: the opcode that combines partial results; "" for a general computation.
    """

    operands: list[Part]
    results: list[TensorSharding]
    reduced: Axes
    reducer: str


def in_place(p: Partitioner, i: Instruction, rule: OpRule, operands: list[Part]) -> Chosen | None:
    """The op as it is where operands and results are split alike along every factor; None where something has to move.

    Most ops are so. Finding that out takes less time than comparing ways.
    """
    axes: dict[int, Axes] = {}
    results = [p.wanted(i, index) for index, s in i.shape.leaves() if s.is_array]
    shardings = [*(part.sharding for part in operands if part.shape.is_array), *results]
    if len(results) != 1 or len(shardings) != len(rule.arrays):
        return None
    for sharding, dims in zip(shardings, rule.arrays, strict=True):
        if sharding.unreduced:
            return None
        for own, numbers in zip(sharding.dims, dims, strict=True):
            if own and len(numbers) != 1:
                return None
            for number in numbers:
                if axes.setdefault(number, own) != own:
                    return None
    made = {number for dims in rule.results for numbers in dims for number in numbers}
    for number, own in axes.items():
        factor = rule.factors[number]
        if own and (factor.kind is not FactorKind.PASS_THROUGH or factor.is_positional or number not in made):
            return None
    return Chosen(operands, results, (), "")


def chosen(
    p: Partitioner, i: Instruction, operands: list[Part], *, rule: OpRule | None = None, moves: bool = False
) -> Chosen:
    """The operands of an op in the shardings that take the fewest bytes.

    `rule` and `moves` are those of `compute_shardings`.
    """
    arrays = [part.sharding for part in operands if part.shape.is_array]
    wanted = [p.wanted(i, index) for index, s in i.shape.leaves() if s.is_array]
    choice = compute_shardings(i, arrays, wanted, p.mesh, rule=rule, moves=moves)
    given, made = iter(choice.operands), iter(choice.results)
    taken = [p.reshard(part, next(given)) if part.shape.is_array else part for part in operands]
    manual = p.manual(i, operands)
    results = [next(made) if s.is_array else TensorSharding.whole(0, manual) for _, s in i.shape.leaves()]
    return Chosen(taken, results, choice.reduced, choice.reducer)


def clean(p: Partitioner, rule: OpRule, operands: Sequence[Part]) -> list[Part]:
    """The operands, with the neutral element beyond the end of dimensions that are reduced."""
    dims, found = iter(rule.operands), list[Part]()
    for part in operands:
        if part.shape.is_array:
            for d, numbers in enumerate(next(dims)):
                factors = [rule.factors[n] for n in numbers]
                if part.is_uneven(d, p.mesh) and any(f.kind is FactorKind.REDUCTION for f in factors):
                    fill = identity(factors[0].reducer or "add", part.shape.element_type)
                    part = Part(p.masked(part, (d,), fill), part.shape, part.sharding)
        found.append(part)
    return found


def local(
    p: Partitioner,
    i: Instruction,
    operands: Sequence[Part],
    results: Sequence[TensorSharding],
    reduced: Axes = (),
    reducer: str = "",
) -> list[Part]:
    """The op on parts. Results partial along the `reduced` atoms stay so for sums; others are combined at once."""
    made = same_op(p, i, whole_operands(p, i, operands), results)
    parts = p.leaves(made, i.shape, results)
    if not reduced or reducer == "add":
        return parts
    return [Part(p.all_reduce(part.value, reduced, reducer), part.shape, part.sharding) for part in parts]


def whole_operands(p: Partitioner, i: Instruction, operands: Sequence[Part]) -> list[Part]:
    """One part an operand: leaves of tuples are put together."""
    if len(operands) == len(i.operands):
        return list(operands)
    taken, found = iter(operands), list[Part]()
    for o in i.operands:
        leaves = [next(taken) for _ in o.shape.leaves()]
        found.append(Part(p.joined(o.shape, leaves), o.shape, TensorSharding.whole(0)))
    return found


def same_op(p: Partitioner, i: Instruction, operands: Sequence[Part], results: Sequence[TensorSharding]) -> Instruction:
    """Op `i` on values of local shapes, with attributes and results of local shapes."""
    shape = local_shapes(p, i.shape, iter(results))
    given = [s.dims for part in operands for _, s in part.value.shape.leaves() if s.is_array]
    sizes = local_attributes(i, given, [s.dims for _, s in shape.leaves() if s.is_array])
    made = p.add(i.opcode, [part.value for part in operands], shape, **{**i.attrs, **sizes})
    if made.called:
        remap_calls(made, {c: p.copied(c) for c in made.called})
    p.keep_extras(i, made)
    return made


def local_shapes(p: Partitioner, shape: Shape, shardings: Iterator[TensorSharding]) -> Shape:
    """The local form of a shape whose leaves have these shardings."""
    if shape.tuple_shapes is not None:
        return tuple_([local_shapes(p, s, shardings) for s in shape.tuple_shapes])
    return p.local(shape, next(shardings))
