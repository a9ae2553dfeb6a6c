"""Ops computed on parts of their operands, to check rules against the meaning of the ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from heron.analysis.sharding.local import local_attributes
from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules import rule_of
from heron.evaluator import Evaluator
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction, make
from heron.hlo.ir.shape import Shape, array, tuple_
from heron.hlo.ir.types import ElementType

Arrays = list[np.ndarray]


def faults(i: Instruction, operands: Sequence[np.ndarray]) -> Iterator[str]:
    """The ways in which the rule of `i` is wrong for these operands, its factors split one at a time."""
    rule = rule_of(i)
    if rule is None or not all(o.shape.is_array for o in i.operands):
        return
    whole = results_of(i, operands)
    for n, f in enumerate(rule.factors):
        if f.is_positional or f.kind not in (FactorKind.PASS_THROUGH, FactorKind.REDUCTION):
            continue
        if f.kind is FactorKind.REDUCTION and not f.reducer:
            continue
        for pieces in (2, 3):
            if f.size > 1 and (cut := parts(rule, n, pieces, operands)) is not None:
                found = joined(i, rule, n, [on_part(i, rule, n, at, *part) for at, part in cut.items()])
                if why := difference(whole, found):
                    yield f"{i}\n{rule}\nfactor {n} in {len(cut)} parts: {why}"


def parts(rule: OpRule, n: int, pieces: int, arrays: Sequence[np.ndarray]) -> dict[int, tuple[int, Arrays]] | None:
    """By its begin each part's length along factor `n` and its operands; None where a dimension of several factors does not divide."""
    size = rule.factors[n].size
    is_one = all(len(dims[d]) == 1 for dims in rule.arrays for d in range(len(dims)) if n in dims[d])
    if size % pieces and not is_one:
        return None
    step = -(-size // pieces)
    cut: dict[int, tuple[int, Arrays]] = {}
    for at in range(0, size, step):
        end = min(at + step, size)
        operands = [_slice(rule, dims, n, x, at, end) for dims, x in zip(rule.operands, arrays, strict=True)]
        cut[at] = (end - at, operands)
    return cut


def _slice(rule: OpRule, dims: Any, n: int, x: np.ndarray, begin: int, end: int) -> np.ndarray:
    for d, numbers in enumerate(dims):
        if n in numbers:
            view, axis = _by_factor(rule, numbers, n, x, d)
            part = view[(slice(None),) * axis + (slice(begin, end),)]
            return part.reshape(*x.shape[:d], -1, *x.shape[d + 1 :])
    return x


def _by_factor(rule: OpRule, numbers: Sequence[int], n: int, x: np.ndarray, d: int) -> tuple[np.ndarray, int]:
    """`x` with dimension `d` as three: the factors before, the factor, those after. And the number of the second."""
    at = list(numbers).index(n)
    major = prod(rule.factors[m].size for m in numbers[:at])
    minor = prod(rule.factors[m].size for m in numbers[at + 1 :])
    return x.reshape(*x.shape[:d], major, -1, minor, *x.shape[d + 1 :]), d + 1


def on_part(i: Instruction, rule: OpRule, n: int, begin: int, size: int, operands: Arrays) -> Arrays:
    """The results of the op on the part of `size` steps of factor `n` from `begin` on."""
    shapes = [_local(s, dims, n, rule, size) for s, dims in zip(leaves(i.shape), rule.results, strict=True)]
    if rule.factors[n].kind is FactorKind.REDUCTION and begin:
        operands = _neutral(i, rule.factors[n].reducer, operands)
    attributes = local_attributes(i, [x.shape for x in operands], [s.dims for s in shapes])
    given = [
        make("parameter", shape=array(o.shape.element_type, x.shape), number=k)
        for k, (o, x) in enumerate(zip(i.operands, operands, strict=True))
    ]
    shape = tuple_(shapes) if i.shape.is_tuple else shapes[0]
    made = Instruction(i.op, given, shape, {**i.attrs, **attributes}, i.name, dict(i.extras))
    inferred = i.op.shape(made, *(g.shape for g in given))
    assert [s.dims for s in leaves(inferred)] == [s.dims for s in shapes], f"{made}: {inferred}"
    return results_of(made, operands)


def _local(s: Shape, dims: Any, n: int, rule: OpRule, size: int) -> Shape:
    local = tuple(
        length * size // rule.factors[n].size if n in numbers else length
        for length, numbers in zip(s.dims, dims, strict=True)
    )
    return array(s.element_type, local)


def _neutral(i: Instruction, reducer: str, operands: Arrays) -> Arrays:
    """The operands with the values that a reduction starts from made neutral: they count once."""
    half = len(operands) // 2
    starts: range = range(0)
    if facts.is_reduction(i):
        starts = range(half, len(operands))
    elif facts.updates_operand(i):
        starts = range(half)
    made = list(operands)
    for n in starts:
        made[n] = np.full_like(operands[n], facts.identity(reducer, i.operands[n].shape.element_type))
    return made


def joined(i: Instruction, rule: OpRule, n: int, found: list[Arrays]) -> Arrays:
    """The results put together: side by side along the factor, or combined."""
    f = rule.factors[n]
    made: Arrays = []
    for k, (dims, shape) in enumerate(zip(rule.results, leaves(i.shape), strict=True)):
        pieces = [results[k] for results in found]
        d = next((d for d, numbers in enumerate(dims) if n in numbers), None)
        if f.kind is FactorKind.REDUCTION:
            made.append(_combined(f.reducer, shape.element_type, pieces))
        elif d is None:
            made.append(pieces[0])
        else:
            views = [_by_factor(rule, dims[d], n, x, d) for x in pieces]
            made.append(np.concatenate([v for v, _ in views], views[0][1]).reshape(shape.dims))
    return made


def _combined(reducer: str, t: ElementType, pieces: Arrays) -> np.ndarray:
    total = pieces[0]
    for piece in pieces[1:]:
        a, b = (make("parameter", shape=array(t, total.shape), number=k) for k in range(2))
        total = _value(make(reducer, [a, b]), total, piece)
    return total


def results_of(i: Instruction, operands: Sequence[np.ndarray]) -> Arrays:
    """The results of `i` on these arrays."""
    value = _value(i, *operands)
    return list(value) if isinstance(value, tuple) else [value]


def _value(i: Instruction, *operands: np.ndarray) -> Any:
    with np.errstate(all="ignore"):
        return i.op.evaluate(Evaluator(), i, *operands)


def leaves(shape: Shape) -> list[Shape]:
    """The arrays of a shape."""
    return [s for _, s in shape.leaves() if s.is_array]


def difference(wanted: Arrays, found: Arrays) -> str:
    """The first difference of results, beyond what rounding explains; empty when there is none."""
    for n, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if a.shape != b.shape:
            return f"result {n} is {b.shape}, {a.shape} wanted"
        if a.dtype.kind in "biu":
            if not np.array_equal(a, b):
                return f"result {n} is {b}, {a} wanted"
            continue
        x, y = (v.astype(np.complex128 if v.dtype.kind == "c" else np.float64) for v in (a, b))
        finite = np.abs(x[np.isfinite(x)])
        error = (1e-4 if a.dtype.itemsize > 2 else 0.05) * max(finite.max(initial=0.0), 1.0)
        if not np.allclose(x, y, 0, error, equal_nan=True):
            return f"result {n} is {b}, {a} wanted"
    return ""
