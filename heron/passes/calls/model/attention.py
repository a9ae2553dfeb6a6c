"""Finding attention: a softmax between two products."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from heron.analysis.values.splat import splat_value
from heron.hlo.facts import combiner, is_scaling
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: at least as low as what masked scores are set to
_MASKED = -1e4


@dataclass(slots=True)
class Attention:
    """``softmax(scale q k^T + bias) v``: the products, and what is between them; ``between``: what stands between
    weights and their product where something does, which makes it another thing. ``weights``: which operand of the
    second product they are. ``mask``: where scores are looked at, all others are set to ``low``."""

    first: Instruction
    second: Instruction
    weights: int = 0
    scale: float = 1.0
    bias: Instruction | None = None
    causal: bool = False
    mask: Instruction | None = None
    low: float = 0.0
    between: Instruction | None = None
    inside: set[Instruction] = field(default_factory=set)

    @property
    def is_used_elsewhere(self) -> bool:
        """Whether others read scores or weights, as a derivative does."""
        return any(i.is_root or not {*self.inside, self.second}.issuperset(i.users) for i in self.inside)


def find_attention(second: Instruction) -> Attention | None:
    """The attention whose product of weights and values is `second`."""
    for n in (0, 1):
        found = _with_weights(second, n)
        if found is not None:
            return found
    return None


def _with_weights(second: Instruction, operand: int) -> Attention | None:
    found = Attention(second, second, operand)
    weights = _bare(second.operands[operand], found.inside)
    if weights.opcode in ("multiply", "select"):
        shares = [o for o in map(lambda o: _bare(o, set()), weights.operands) if o.opcode == "divide"]
        if len(shares) == 1 and _softmax(shares[0], found.inside) is not None:
            found.between = weights
            return found
    scores = _softmax(weights, found.inside)
    return found if scores is not None and _scores(scores, found) else None


def _bare(i: Instruction, inside: set[Instruction]) -> Instruction:
    """The operand of a conversion, or the value itself."""
    while i.opcode == "convert":
        inside.add(i)
        i = i.operands[0]
    return i


def _softmax(share: Instruction, inside: set[Instruction]) -> Instruction | None:
    """The scores a softmax along the last dimension is of."""
    if share.opcode != "divide":
        return None
    weights = _bare(share.operands[0], inside)
    summed = _of_rows(share.operands[1], "add", inside)
    if weights.opcode != "exponential" or summed is None or _bare(summed, inside) is not weights:
        return None
    centred = _bare(weights.operands[0], inside)
    if centred.opcode != "subtract":
        return None
    scores, largest = centred.operands[0], _of_rows(centred.operands[1], "maximum", inside)
    if largest is None or _bare(largest, inside) is not _bare(scores, inside):
        return None
    inside |= {share, weights, centred}
    return scores


def _of_rows(spread: Instruction, opcode: str, inside: set[Instruction]) -> Instruction | None:
    """The operand of a row reduction by that op, if `spread` is its result broadcast along the rows."""
    spread = _bare(spread, inside)
    last = spread.shape.rank - 1
    if spread.opcode != "broadcast" or spread.attrs["dimensions"] != tuple(range(last)):
        return None
    inside.add(spread)
    total = _bare(spread.operands[0], inside)
    if total.opcode == opcode == "maximum":  # at least the lowest there is, as JAX writes it
        numbers = [splat_value(o) for o in total.operands]
        lowest = next((n for n, v in enumerate(numbers) if v is not None and np.isneginf(float(v))), None)
        if lowest is None:
            return None
        inside.add(total)
        total = _bare(total.operands[1 - lowest], inside)
    if total.opcode != "reduce" or len(total.operands) != 2 or total.attrs["dimensions"] != (last,):
        return None
    start = splat_value(total.operands[1])
    neutral = start is not None and (float(start) == 0 if opcode == "add" else np.isneginf(float(start)))
    if not neutral or combiner(total.attrs["to_apply"]) != opcode:
        return None
    inside.add(total)
    return total.operands[0]


def _scores(i: Instruction, found: Attention) -> bool:
    """Upwards from the scores: a mask, a bias, a scale, the product."""
    i = _bare(i, found.inside)
    if i.opcode == "select":
        low = splat_value(i.operands[2])
        if low is None or float(low) > _MASKED:
            return False
        if _is_causal(i.operands[0]):
            found.causal = True
        else:
            found.mask, found.low = i.operands[0], float(low)
        found.inside.add(i)
        i = _bare(i.operands[1], found.inside)
    if i.opcode == "add":
        sides = [_bare(o, set()) for o in i.operands]
        scored = next((n for n, o in enumerate(sides) if _leads_to_product(o)), None)
        if scored is None:
            return False
        found.bias = i.operands[1 - scored]
        found.inside.add(i)
        i = _bare(i.operands[scored], found.inside)
    while is_scaling(i):
        by = splat_value(i.operands[1])
        if by is None:
            return False
        found.scale *= float(by) if i.opcode == "multiply" else 1 / float(by)
        found.inside.add(i)
        i = _bare(i.operands[0], found.inside)
    found.first = i
    found.inside.add(i)
    return i.opcode == "dot"


def _leads_to_product(i: Instruction) -> bool:
    while is_scaling(i) or i.opcode == "convert":
        i = i.operands[0]
    return i.opcode == "dot"


def _is_causal(seen: Instruction) -> bool:
    """Whether it holds where a key's position is at most the query's."""
    rank, dims = seen.shape.rank, tuple(range(seen.shape.rank))
    if seen.opcode == "broadcast":
        dims, seen = seen.attrs["dimensions"], seen.operands[0]
    if seen.opcode != "compare" or any(o.opcode != "iota" for o in seen.operands):
        return False
    row, key = (dims[o.attrs["iota_dimension"]] for o in seen.operands)
    return {"GE": (row, key), "LE": (key, row)}.get(seen.direction) == (rank - 2, rank - 1)


def spread_of(x: Instruction, first: Instruction) -> tuple[Instruction, tuple[int, ...]] | None:
    """The array a bias or a mask repeats, and which dimensions of the scores it has; None where in another order."""
    source, dims = x, tuple(range(first.shape.rank))
    while source.opcode in ("convert", "broadcast"):
        if source.opcode == "broadcast":
            dims = tuple([dims[d] for d in source.attrs["dimensions"]])
        source = source.operands[0]
    return (source, dims) if dims == tuple(sorted(dims)) else None
