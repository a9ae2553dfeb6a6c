"""The sharding rule of an op: its dimensions as loops, and what each loop allows.

A *factor* is one loop of the op. A dimension of an operand or a result is a product of factors, major to minor. Two
dimensions with a common factor are split in the same way. The kind of a factor says what is computed when the factor
is split: the same op on parts (pass-through), partial results that are combined (reduction), the same op after data
has moved between neighbours (permutation), or nothing (need-replication).

Rules have a text, which is that of Shardy:

    >>> rule = parse("([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}")
    >>> rule.operands, rule.results
    ((((0,), (2,)), ((2,), (1,))), (((0,), (1,)),))
    >>> rule.factors[2].kind
    <FactorKind.REDUCTION: 'reduction'>
    >>> print(rule)
    ([i, k], [k, j])->([i, j]) {i=8, j=8, k=8} reduction={k}
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.tiles import reject
from heron.records import dataclass

#: for each dimension of an array the factors it consists of, major to minor
Dims: TypeAlias = tuple[tuple[int, ...], ...]


class FactorKind(enum.Enum):
    """The way in which an op is computed when a factor is split; the values are the words of the text."""

    __hash__ = object.__hash__

    #: the result's parts are the op of the operands' parts
    PASS_THROUGH = "pass_through"
    #: the op of the operands' parts is a partial result
    REDUCTION = "reduction"
    #: the op cannot be computed on parts
    NEED_REPLICATION = "need_replication"
    #: the result's parts need elements of other parts
    PERMUTATION = "permutation"


@dataclass(frozen=True, slots=True)
class Factor:
    """One loop of an op.

    Attributes:
        size: the number of its steps.
        kind: what happens when it is split.
        is_blocked: whether shardings do not propagate along it.
        reducer: for a reduction, the opcode that combines partial results (``add``, ``maximum``, …); "" when a general
            computation does.
        is_positional: whether the op's values depend on the position along the factor, so that the same op on parts
            is something else: indices that count along it are shifted and those of other parts masked.
    """

    size: int
    kind: FactorKind = FactorKind.PASS_THROUGH
    is_blocked: bool = False
    reducer: str = ""
    is_positional: bool = False


@dataclass(frozen=True)
class OpRule:
    """The factors of an op, and those of every dimension of its arrays.

    Arrays are the leaves of all operands, then those of the result, in order; tokens are left out.

    Attributes:
        factors: the factors by number.
        operands: ``operands[n][d]`` has the factors of dimension d of array n, major to minor.
        results: the same for results.
        is_custom: whether the user wrote it.
    """

    factors: tuple[Factor, ...]
    operands: tuple[Dims, ...]
    results: tuple[Dims, ...]
    is_custom: bool = False

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.factors, self.operands, self.results))

    @property
    def arrays(self) -> tuple[Dims, ...]:
        """All arrays, operands first."""
        return self.operands + self.results

    def of_kind(self, kind: FactorKind) -> tuple[int, ...]:
        """The numbers of the factors of a kind."""
        return tuple(n for n, f in enumerate(self.factors) if f.kind is kind)

    @cached_property
    def places(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """For each factor where it is: (array, dimension), arrays counted through operands, then results."""
        found: list[list[tuple[int, int]]] = [[] for _ in self.factors]
        for n, dims in enumerate(self.arrays):
            for d, numbers in enumerate(dims):
                for number in numbers:
                    found[number].append((n, d))
        return tuple(map(tuple, found))

    def need_fit(self, i: Instruction) -> OpRule:
        """The rule. Raises HLO027 unless it has the arrays and the ranks of `i`."""
        given = [s for o in i.operands for _, s in o.shape.leaves() if s.is_array]
        made = [s for _, s in i.shape.leaves() if s.is_array]
        for what, arrays, shapes in (("operands", self.operands, given), ("results", self.results, made)):
            if len(arrays) != len(shapes):
                reject(f"the rule {self} of '{i.name}' has {len(arrays)} {what}", f"there are {len(shapes)}")
            for n, (dims, shape) in enumerate(zip(arrays, shapes, strict=True)):
                if len(dims) != shape.rank:
                    reject(f"the rule {self} of '{i.name}' gives {what[:-1]} {n} rank {len(dims)}", f"it is {shape}")
        return self

    def __str__(self) -> str:
        text = f"({_arrays_text(self.operands)})->({_arrays_text(self.results)})"
        if self.factors:
            text += " {" + ", ".join(f"{symbol(n)}={f.size}" for n, f in enumerate(self.factors)) + "}"
        for kind in _WORDS.values():
            text += _factors_text(kind.value, self.of_kind(kind))
        text += _factors_text("blocked_propagation", [n for n, f in enumerate(self.factors) if f.is_blocked])
        return text + ", custom" * self.is_custom


_WORDS = {k.value: k for k in (FactorKind.REDUCTION, FactorKind.NEED_REPLICATION, FactorKind.PERMUTATION)}


def symbol(factor: int) -> str:
    """The name of a factor in texts: ``i`` to ``z``, then ``z_1``, ``z_2``, …"""
    last = ord("z") - ord("i")
    return chr(ord("i") + factor) if factor <= last else f"z_{factor - last}"


def _arrays_text(arrays: Sequence[Dims]) -> str:
    return ", ".join("[" + ", ".join("".join(map(symbol, d)) for d in dims) + "]" for dims in arrays)


def _factors_text(word: str, factors: Iterable[int]) -> str:
    names = ", ".join(map(symbol, factors))
    return f" {word}={{{names}}}" if names else ""


# -- parsing ---------------------------------------------------------------------------------------------------------
_RULE = re.compile(
    r"\s*(?:#sdy\.op_sharding_rule)?\s*<?\s*\((?P<operands>[^()]*)\)\s*->\s*\((?P<results>[^()]*)\)"
    r"\s*(?P<sizes>\{[^{}]*\})?(?P<kinds>(?:\s*\w+\s*=\s*\{[^{}]*\})*)\s*(?P<custom>,\s*custom)?\s*>?\s*"
)
_SYMBOL = re.compile(r"z_\d+|[i-z]")


def parse(text: str) -> OpRule:
    """The rule of Shardy's text, with or without ``#sdy.op_sharding_rule<…>`` around it.

    Raises HLO027 for a text that is no rule, and for factors that do not fit together.
    """
    match = _RULE.fullmatch(text)
    if match is None:
        reject(f"'{text}' is no sharding rule", "expected ([i, j], …)->([i, j], …) {i=4, j=8} reduction={…} …")
    sizes = _sizes(text, match["sizes"] or "")
    factors = [Factor(size) for size in sizes.values()]
    numbers = {name: n for n, name in enumerate(sizes)}
    for word, names in re.findall(r"(\w+)\s*=\s*\{([^{}]*)\}", match["kinds"]):
        for number in _numbers(text, names, numbers):
            factors[number] = _with(text, factors[number], word)
    operands, results = (tuple(_dims(text, match[part], numbers)) for part in ("operands", "results"))
    return _checked(text, OpRule(tuple(factors), operands, results, match["custom"] is not None))


def _with(text: str, factor: Factor, word: str) -> Factor:
    if word == "blocked_propagation":
        return replace(factor, is_blocked=True)
    kind = _WORDS.get(word)
    if kind is None:
        reject(f"'{word}' is no kind of factor in the sharding rule {text}", f"there are: {', '.join(_WORDS)}")
    if factor.kind is not FactorKind.PASS_THROUGH:
        reject(f"a factor has two kinds in the sharding rule {text}")
    return replace(factor, kind=kind, reducer="add" if kind is FactorKind.REDUCTION else "")


def _sizes(text: str, sizes: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in filter(None, (p.strip() for p in sizes.strip("{}").split(","))):
        name, _, size = (p.strip() for p in part.partition("="))
        if not _SYMBOL.fullmatch(name) or not size.isdigit() or symbol(len(found)) != name:
            reject(
                f"'{part}' is no size of a factor in the sharding rule {text}", f"expected {symbol(len(found))}=SIZE"
            )
        found[name] = int(size)
    return found


def _numbers(text: str, names: str, numbers: dict[str, int]) -> Iterator[int]:
    for name in filter(None, (n.strip() for n in names.split(","))):
        if name not in numbers:
            reject(f"the factor '{name}' has no size in the sharding rule {text}")
        yield numbers[name]


def _dims(text: str, arrays: str, numbers: dict[str, int]) -> Iterator[Dims]:
    for inner in re.findall(r"\[([^\[\]]*)\]", arrays):
        dims: list[tuple[int, ...]] = []
        for dim in filter(None, (d.strip() for d in inner.split(","))):
            names = _SYMBOL.findall(dim)
            if "".join(names) != dim:
                reject(f"'{dim}' is no dimension in the sharding rule {text}", "factors are i to z, z_1, z_2, …")
            dims.append(tuple(_numbers(text, ",".join(names), numbers)))
        yield tuple(dims)


def _checked(text: str, rule: OpRule) -> OpRule:
    """`rule`, unless an array has a factor twice or a factor is in no array."""
    for dims in rule.arrays:
        used = [n for numbers in dims for n in numbers]
        if len(used) != len(set(used)):
            reject(f"an array has a factor twice in the sharding rule {text}")
    for n, places in enumerate(rule.places):
        if not places:
            reject(f"the factor '{symbol(n)}' is in no array of the sharding rule {text}")
    return rule
