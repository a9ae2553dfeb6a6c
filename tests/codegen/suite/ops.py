"""The table of elementwise ops: for each, its operands, its result and its text. HLO's own rules say on which types.

An op is one line of text over parameters `p0 … p2`, all of one type, so that many ops share one fusion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from heron.hlo.ir import types
from heron.hlo.ir.op import Trait, all_ops
from heron.hlo.ir.types import ElementType
from tests.codegen.suite.values import TYPES


def shape_text(t: ElementType, dims: tuple[int, ...]) -> str:
    """A shape as text."""
    return f"{t.name}[{','.join(map(str, dims))}]"


@dataclass(frozen=True)
class Op:
    """An elementwise op: `expression` with the result's type in front; `result` maps the operands' type to it.

    ``arity``: how many of the parameters it reads. ``exact``: whether every bit is defined (not: transcendental).
    """

    name: str
    expression: str
    arity: int
    result: str = "same"
    exact: bool = True

    def result_type(self, t: ElementType) -> ElementType:
        """The result's element type for operands of type `t`."""
        if self.result == "same":
            return t
        if self.result == "component":
            return t.component
        if self.result == "complex":
            return types.C128 if t is types.F64 else types.C64
        return types.by_name(self.result)

    def line(
        self, t: ElementType, name: str, dims: tuple[int, ...], operands: tuple[str, ...] = ("p0", "p1", "p2")
    ) -> str:
        """The instruction's text on operands of type `t[dims]`."""
        expression = self.expression.replace("%d", ",".join(map(str, range(len(dims)))))
        for number, operand in enumerate(operands):
            expression = expression.replace(f"%{number}", operand)
        return f"{name} = {shape_text(self.result_type(t), dims)} {expression}"


_RESULTS = {"abs": "component", "real": "component", "imag": "component", "is-finite": "pred", "complex": "complex"}
_SPECIAL = frozenset({"convert", "bitcast-convert", "reduce-precision", "compare", "clamp", "select", "copy"})
_FORMATS = ((5, 10), (4, 3), (8, 7), (5, 2), (2, 0), (11, 52))


def _plain() -> list[Op]:
    """One and two operands of a type, no attributes: from the declarations."""
    found = []
    for op in all_ops():
        names = op.operands
        if Trait.ELEMENTWISE not in op.traits or op.name in _SPECIAL or op.name == "stochastic-convert":
            continue
        assert names in (("operand",), ("lhs", "rhs")), op.name
        operands = ", ".join(f"%{n}" for n in range(len(names)))
        exact = Trait.TRANSCENDENTAL not in op.traits or op.name == "sqrt"
        found.append(Op(op.name, f"{op.name}({operands})", len(names), _RESULTS.get(op.name, "same"), exact))
    return found


@cache
def table() -> tuple[Op, ...]:
    """Every op."""
    found = _plain()
    found += [Op("copy", "copy(%0)", 1), Op("clamp", "clamp(%1, %0, %2)", 3)]
    found.append(Op("map", "map(%0, %1), dimensions={%d}, to_apply=scalar", 2))
    found.append(Op("select", "select(%w, %0, %1)", 2))
    for d in ("EQ", "NE", "LT", "LE", "GT", "GE"):
        found.append(Op(f"compare {d}", f"compare(%0, %1), direction={d}", 2, "pred"))
        found.append(Op(f"compare {d} total", f"compare(%0, %1), direction={d}, type=TOTALORDER", 2, "pred"))
    for t in TYPES:
        found.append(Op(f"convert {t}", "convert(%0)", 1, t.name))
        found.append(Op(f"bitcast-convert {t}", "bitcast-convert(%0)", 1, t.name))
    for a, b in _FORMATS:
        found.append(Op(f"reduce-precision {a} {b}", f"reduce-precision(%0), exponent_bits={a}, mantissa_bits={b}", 1))
    for t in TYPES:
        if t.is_signed:
            found.append(Op(f"stochastic-convert {t}", "stochastic-convert(%0, %u)", 1, t.name))
    return tuple(found)
