"""Finding GELU, by its approximation with tanh, among what is computed from a value."""

from __future__ import annotations

from math import pi, sqrt

from heron.analysis.values.splat import splat_value
from heron.hlo.facts import accumulates
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass

#: how far a constant may be from what it stands for, relatively: bf16 has 8 bits
_NEAR = 2.0**-8
#: how many uses away from the value tanh is at most
_REACH = 6


@dataclass(frozen=True, slots=True)
class Gelu:
    """The last op, and whether the value it is of is used by others too."""

    root: Instruction
    used_elsewhere: bool


def find_gelu(x: Instruction) -> Gelu | None:
    """The GELU of `x`, if the program computes it: all but the result is used by nothing else."""
    for tanh in _tanhs(x):
        inside: set[Instruction] = {tanh}
        if not _is_inner(tanh.operands[0], x, inside):
            continue
        root = _outer(tanh, x, inside)
        if root is None or any(i is not root and (i.is_root or not inside.issuperset(i.users)) for i in inside):
            continue
        return Gelu(root, not inside.issuperset(x.users))
    return None


def _tanhs(x: Instruction) -> list[Instruction]:
    found, seen, front = [], {x}, [x]
    for _ in range(_REACH):
        front = [u for i in front for u in i.users if u not in seen and (accumulates(u.op) or u.opcode == "tanh")]
        seen.update(front)
        found += [u for u in dict.fromkeys(front) if u.opcode == "tanh"]
    return found


def _is_inner(i: Instruction, x: Instruction, inside: set[Instruction]) -> bool:
    """Whether `i` is sqrt(2 / pi) * (x + 0.044715 * x * x * x)."""
    number, factors = _factors(i, x, inside)
    if len(factors) != 1 or not _near(number, sqrt(2 / pi)):
        return False
    (total,) = factors
    if total.opcode != "add" or x not in total.operands:
        return False
    inside.add(total)
    number, factors = _factors(total.operands[1 - total.operands.index(x)], x, inside)
    return factors == [x, x, x] and _near(number, 0.044715)


def _outer(tanh: Instruction, x: Instruction, inside: set[Instruction]) -> Instruction | None:
    """The product 0.5 * x * (1 + tanh), found upwards from tanh."""
    one = _only_user(tanh, "add")
    if one is None or not _near(_number(one.operands[1 - one.operands.index(tanh)]), 1.0):
        return None
    inside.add(one)
    root = one
    while (user := _only_user(root, "multiply")) is not None:
        tried = set(inside)
        number, factors = _factors(user, x, tried, stop=one)
        if _near(number, 0.5) and sorted(map(id, factors)) == sorted((id(x), id(one))):
            inside |= tried
            return user
        root = user
    return None


def _only_user(i: Instruction, opcode: str) -> Instruction | None:
    user = next(iter(i.users)) if len(i.users) == 1 and not i.is_root else None
    return user if user is not None and user.opcode == opcode else None


def _factors(
    i: Instruction, x: Instruction, inside: set[Instruction], stop: Instruction | None = None
) -> tuple[float, list[Instruction]]:
    """A product taken apart: the number in it, and its other factors; the multiplications are added to `inside`."""
    if i is x or i is stop:
        return 1.0, [i]
    number = _number(i)
    if number is not None:
        return number, []
    if i.opcode != "multiply":
        return 1.0, [i]
    inside.add(i)
    total, factors = 1.0, []
    for operand in i.operands:
        n, more = _factors(operand, x, inside, stop)
        total, factors = total * n, factors + more
    return total, factors


def _number(i: Instruction) -> float | None:
    value = splat_value(i)
    return None if value is None else float(value)


def _near(value: float | None, wanted: float) -> bool:
    return value is not None and abs(value - wanted) <= _NEAR * wanted
