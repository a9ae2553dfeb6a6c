"""Finding layer norms: rows brought to mean 0 and variance 1, then scaled and shifted column by column."""

from __future__ import annotations

from dataclasses import field
from math import prod

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import combiner, is_scaling
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: how far the divisor of a mean may be from the number of columns, relatively
_NEAR = 1e-6


@dataclass(slots=True)
class LayerNorm:
    """``(x - mean) * factor * scale + bias`` with ``factor = rsqrt(variance + epsilon)``; or divided by a root.

    ``columns``: dimensions of x that are a row; ``centred``: x less its means; ``inside``: what computes the norm.
    ``divides``: the factor is ``sqrt(variance + epsilon)``, by which is divided.
    """

    x: Instruction
    mean: Instruction
    factor: Instruction
    scale: Instruction
    bias: Instruction
    centred: Instruction
    root: Instruction
    epsilon: float
    columns: tuple[int, ...]
    inside: set[Instruction] = field(default_factory=set)

    @property
    def divides(self) -> bool:
        return self.factor.opcode == "sqrt"

    @property
    def is_used_elsewhere(self) -> bool:
        """Whether the mean or the factor is wanted by others, as a derivative does."""
        return any(i.is_root or not self.inside.issuperset(i.users) for i in self.inside if i is not self.root)


def find_layer_norm(root: Instruction) -> LayerNorm | None:
    """The layer norm whose last op, an addition, is `root`."""
    if root.opcode != "add" or not root.shape.element_type.is_float:
        return None
    for product, shift in (root.operands, root.operands[::-1]):
        found = _scaled_and_shifted(root, product, shift)
        if found is not None:
            return found
    return None


def _scaled_and_shifted(root: Instruction, product: Instruction, shift: Instruction) -> LayerNorm | None:
    bias, columns = _spread(shift)
    inside = {root, shift}
    factors = _factors(product, inside)
    if bias is None or not columns or columns[-1] != root.shape.rank - 1 or len(factors) != 3:
        return None
    centred = next((f for f, divides in factors if f.opcode == "subtract" and not divides), None)
    if centred is None:
        return None
    scale, factor = _scale_and_factor(factors, columns)
    inside.update(f for f, _ in factors)
    x, spread = centred.operands
    mean, rows = _spread(spread)
    if scale is None or factor is None or mean is None or rows != _others(root, columns):
        return None
    inside |= {centred, spread, factor}
    epsilon = _epsilon(factor, x, mean, centred, columns, inside)
    if epsilon is None or not _is_mean(mean, x, columns, inside):
        return None
    return LayerNorm(x, mean, factor, scale, bias, centred, root, epsilon, columns, inside)


def _scale_and_factor(
    factors: list[tuple[Instruction, bool]], columns: tuple[int, ...]
) -> tuple[Instruction | None, Instruction | None]:
    """Among factors, each with whether it divides: the scale of columns, and the root by which rows are scaled."""
    scale = factor = None
    for f, divides in factors:
        source, dims = _spread(f)
        if source is not None and dims == columns and not divides:
            scale = source
        elif source is not None and source.opcode == ("sqrt" if divides else "rsqrt"):
            factor = source
    return scale, factor


def _others(x: Instruction, columns: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([d for d in range(x.shape.rank) if d not in columns])


def _spread(i: Instruction) -> tuple[Instruction | None, tuple[int, ...]]:
    """The operand of a broadcast, and the dimensions of the result that it has."""
    return (i.operands[0], i.attrs["dimensions"]) if i.opcode == "broadcast" else (None, ())


def _factors(i: Instruction, inside: set[Instruction]) -> list[tuple[Instruction, bool]]:
    """A product taken apart, each part with whether it is divided by."""
    if not is_scaling(i):
        return [(i, False)]
    inside.add(i)
    a, b = i.operands
    return [*_factors(a, inside), *([(b, True)] if i.opcode == "divide" else _factors(b, inside))]


def _epsilon(
    factor: Instruction,
    x: Instruction,
    mean: Instruction,
    centred: Instruction,
    columns: tuple[int, ...],
    inside: set[Instruction],
) -> float | None:
    """The constant added to the variance of `x` under the root; None if there is something else."""
    total = factor.operands[0]
    if total.opcode != "add":
        return None
    for variance, number in (total.operands, total.operands[::-1]):
        value = splat_value(number)
        if value is not None and _is_variance(variance, x, mean, centred, columns, inside):
            inside.add(total)
            return float(value)
    return None


def _is_variance(
    i: Instruction,
    x: Instruction,
    mean: Instruction,
    centred: Instruction,
    columns: tuple[int, ...],
    inside: set[Instruction],
) -> bool:
    """The mean of ``(x - mean)^2``; or that of ``x^2`` less the mean's square, at least 0 or not."""
    if i.opcode == "maximum":
        a, b = i.operands
        inside.add(i)
        i = a if is_splat(b, 0) else b if is_splat(a, 0) else i
    if i.opcode != "subtract":
        return _is_mean_of_square(i, centred, columns, inside)
    squares, square = i.operands
    inside |= {i, square}
    is_square = square.opcode == "multiply" and tuple(square.operands) == (mean, mean)
    return is_square and _is_mean_of_square(squares, x, columns, inside)


def _is_mean_of_square(i: Instruction, of: Instruction, columns: tuple[int, ...], inside: set[Instruction]) -> bool:
    total = _summed(i, columns, inside)
    if total is None or total.opcode != "multiply" or tuple(total.operands) != (of, of):
        return False
    inside.add(total)
    return True


def _is_mean(i: Instruction, of: Instruction, columns: tuple[int, ...], inside: set[Instruction]) -> bool:
    return _summed(i, columns, inside) is of


def _summed(i: Instruction, columns: tuple[int, ...], inside: set[Instruction]) -> Instruction | None:
    """The operand of which `i` is the mean along these dimensions: a sum times a constant, or divided by one."""
    if not is_scaling(i):
        return None
    value = splat_value(i.operands[1])
    total = i.operands[0]
    if value is None and i.opcode == "multiply":
        value, total = splat_value(i.operands[0]), i.operands[1]
    if value is None or total.opcode != "reduce" or len(total.operands) != 2:
        return None
    count = prod(total.operands[0].shape.dims[d] for d in columns)
    by = float(value) * count if i.opcode == "multiply" else float(value) / count
    if abs(by - 1) > _NEAR or tuple(sorted(total.attrs["dimensions"])) != columns:
        return None
    if combiner(total.attrs["to_apply"]) != "add" or not is_splat(total.operands[1], 0):
        return None
    inside |= {i, total}
    return total.operands[0]
