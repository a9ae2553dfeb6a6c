"""The partitioned form of most ops: the same op on parts, in the shardings that its rule and its operands suggest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules import rule_of
from heron.hlo.ir.computation import remap_calls
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.part import Part, local_shape

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


def partition(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The parts of the results of an op that is computed on parts of its operands.

    An op without a rule is computed whole, on every device.
    """
    rule = rule_of(i)
    if rule is None:
        return replicated(p, i, operands)
    return local(p, i, *chosen(p, i, rule, operands))


def replicated(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The op computed on whole operands."""
    wholes = [p.whole(part) for part in operands]
    manual = p.manual(i, operands)
    return local(p, i, wholes, [TensorSharding.whole(s.rank, manual) for _, s in i.shape.leaves()], ())


def chosen(
    p: Partitioner, i: Instruction, rule: OpRule, operands: list[Part]
) -> tuple[list[Part], list[TensorSharding], tuple[int, ...]]:
    """The operands in the shardings that the op is computed in, those of its results, and the atoms to be reduced."""
    arrays = [part for part in operands if part.shape.is_array]
    wanted = [p.wanted(i, index) for index, s in i.shape.leaves() if s.is_array]
    ins, outs, reduced = compute_shardings(p, i, rule, [part.sharding for part in arrays], wanted)
    given, made = iter(ins), iter(outs)
    taken = [p.reshard(part, next(given)) if part.shape.is_array else part for part in operands]
    manual = p.manual(i, operands)
    results = [next(made) if s.is_array else TensorSharding.whole(0, manual) for _, s in i.shape.leaves()]
    return taken, results, reduced


def compute_shardings(
    p: Partitioner, i: Instruction, rule: OpRule, operands: Sequence[TensorSharding], results: Sequence[TensorSharding]
) -> tuple[list[TensorSharding], list[TensorSharding], tuple[int, ...]]:
    """The shardings of the results, extended to the operands along the factors of the rule."""
    split: dict[int, tuple[int, ...]] = {}
    used: set[int] = set()
    arrays = [*zip(results, rule.results, strict=True), *zip(operands, rule.operands, strict=True)]
    for sharding, dims in arrays:
        for axes, factors in zip(sharding.dims, dims, strict=True):
            left = list(axes)
            for n in factors:
                f = rule.factors[n]
                if f.kind not in (FactorKind.PASS_THROUGH, FactorKind.REDUCTION) or n in split:
                    break
                if f.kind is FactorKind.REDUCTION and not f.reducer:
                    break
                taken: list[int] = []
                size = 1
                while left and left[0] not in used:
                    size *= p.mesh.sizes[left[0]]
                    if f.size % size and len(factors) > 1:
                        break
                    taken.append(left.pop(0))
                split[n] = tuple(taken)
                used.update(taken)
                if p.mesh.size(taken) != f.size:
                    break
    manual = results[0].manual if results else (operands[0].manual if operands else ())

    def of(dims: tuple[tuple[int, ...], ...]) -> TensorSharding:
        found: list[tuple[int, ...]] = []
        for factors in dims:
            axes: tuple[int, ...] = ()
            for n in factors:
                axes += split.get(n, ())
                if p.mesh.size(split.get(n, ())) != rule.factors[n].size:
                    break
            found.append(axes)
        return TensorSharding.closed(found, manual=manual)

    reduced = tuple(a for n, axes in split.items() if rule.factors[n].kind is FactorKind.REDUCTION for a in axes)
    return [of(d) for d in rule.operands], [of(d) for d in rule.results], reduced


def local(
    p: Partitioner, i: Instruction, operands: Sequence[Part], results: Sequence[TensorSharding], reduced: Sequence[int]
) -> list[Part]:
    """The op on parts. Its results are partial sums along the `reduced` atoms."""
    made = same_op(p, i, [value.value for value in whole_operands(p, i, operands)], results)
    shardings = [TensorSharding.closed(s.dims, reduced, s.manual) for s in results]
    return p.leaves(made, i.shape, shardings)


def whole_operands(p: Partitioner, i: Instruction, operands: Sequence[Part]) -> list[Part]:
    """One part an operand: leaves of tuples are put together."""
    if len(operands) == len(i.operands):
        return list(operands)
    taken, found = iter(operands), list[Part]()
    for o in i.operands:
        leaves = [next(taken) for _ in o.shape.leaves()]
        found.append(Part(p.joined(o.shape, leaves), o.shape, TensorSharding.whole(0)))
    return found


def same_op(
    p: Partitioner, i: Instruction, operands: Sequence[Instruction], results: Sequence[TensorSharding]
) -> Instruction:
    """Op `i` on values of local shapes, with its attributes and results of local shapes."""
    attrs = dict(i.attrs)
    made = p.add(i.opcode, operands, local_shapes(p, i.shape, iter(results)), **attrs)
    if made.called:
        remap_calls(made, {c: p.copied(c) for c in made.called})
    p.keep_extras(i, made)
    return made


def local_shapes(p: Partitioner, shape: Shape, shardings: Iterator[TensorSharding]) -> Shape:
    """The local form of a shape whose leaves have these shardings."""
    if shape.tuple_shapes is not None:
        return tuple_([local_shapes(p, s, shardings) for s in shape.tuple_shapes])
    return local_shape(shape, next(shardings), p.mesh)
