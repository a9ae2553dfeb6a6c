"""``python -m tests.codegen.accuracy --write``: how far every transcendental op is from the exact value.

Kernels of each op and type run on the CPU and on the simulated GPU over dense sweeps: all values of the 16-bit types;
of the others, values of every exponent, both signs, denormals and infinities included, and many where functions are
mostly used. The reference is NumPy in a wider type. The table goes to docs/reference/accuracy.md.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

from heron.hlo.ir import types
from heron.hlo.ir.op import Trait, all_ops
from heron.hlo.ir.types import ElementType
from heron.hlo.meaning import complex_math
from tests.codegen import libdevice_host
from tests.codegen.run_kernel import emit_and_run
from tests.codegen.suite.ops import Op, table
from tests.codegen.suite.program import Program

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "accuracy.md"
TARGETS = ("cpu", "sim:sm_90")
REAL = (types.F16, types.BF16, types.F32, types.F64)
COMPLEX = (types.C64, types.C128)
#: elements of a sweep of a type that is not swept whole
COUNT = 400_000
WIDE = np.longdouble


@dataclass(frozen=True)
class Error:
    """The largest error found, in units of the last place of the exact value, and where."""

    op: str
    type: str
    target: str
    ulps: float
    where: str


def functions() -> list[Op]:
    """The transcendental ops."""
    names = {op.name for op in all_ops() if Trait.TRANSCENDENTAL in op.traits}
    return [op for op in table() if op.name in names]


# -- inputs ------------------------------------------------------------------------------------------------------------


def sweep(t: ElementType, count: int, seed: int) -> np.ndarray:
    """Values of a real type."""
    if t.bits == 16:
        return np.arange(1 << 16, dtype=np.uint16).view(t.dtype)
    rng, words = np.random.default_rng(seed), np.dtype(f"u{t.byte_size}")
    share = count // 4
    bits = rng.integers(0, np.iinfo(words).max, share, words.type, endpoint=True).view(t.dtype)  # every exponent
    usual = rng.uniform(-12, 12, share)
    near_zero = np.exp(rng.uniform(-40, 0, share)) * rng.choice([-1, 1], share)
    near_one = (1 + np.exp(rng.uniform(-36, 0, share)) * rng.choice([-1, 1], share)) * rng.choice([-1, 1], share)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88.7228, -87.3365, -103.97, 709.782, -708.4, -745.13]
    edges += [np.pi, np.pi / 2, np.pi / 4, 1e5, 1e10, 2.0**40, 2.0**120]
    return np.concatenate([bits, *(x.astype(t.dtype) for x in (usual, near_zero, near_one, np.array(edges)))])


def inputs(op: Op, t: ElementType, count: int) -> list[np.ndarray]:
    """The operands of an op."""
    if t.is_complex:
        part = t.component
        rng = np.random.default_rng(11)
        parts = [rng.permutation(np.exp(rng.uniform(-8, 2.2, count)) * rng.choice([-1, 1], count)) for _ in range(4)]
        pairs = [(parts[0] + 1j * parts[1]).astype(t.dtype), (parts[2] + 1j * parts[3]).astype(t.dtype)]
        assert part.is_float
        return pairs[: op.arity]
    first = sweep(t, count, 1)
    if op.arity == 1:
        return [first]
    rng = np.random.default_rng(2)
    if op.name == "power":  # results in range: bases of every size, exponents that do not overflow
        with np.errstate(all="ignore"):
            size = np.abs(np.log2(np.abs(first.astype(np.float64)) + 1e-30))
        second = rng.uniform(-1, 1, first.size) * 80 / np.maximum(size, 0.5)
        return [np.abs(first), second.astype(t.dtype)]
    return [first, rng.permutation(first)]


# -- the exact values --------------------------------------------------------------------------------------------------


def exact(op: Op, t: ElementType, arrays: list[np.ndarray]) -> np.ndarray:
    """The values in a wider type."""
    wide = {types.F64: WIDE, types.C64: np.complex128, types.C128: np.clongdouble}.get(t, np.float64)
    with np.errstate(all="ignore"):
        a = [x.astype(wide) for x in arrays]
        return _FUNCTIONS[op.name](*a)


def _erf(x: np.ndarray) -> np.ndarray:
    """2/√π·e^(-x²)·Σ 2^n x^(2n+1)/(2n+1)!!, whose terms have one sign."""
    a = np.minimum(np.abs(x), x.dtype.type(7))
    term, total = a.copy(), a.copy()
    for n in range(1, 220):
        term = term * (2 * a * a) / (2 * n + 1)
        total = total + term
    root = np.sqrt(np.arccos(x.dtype.type(-1)))
    return np.copysign(np.where(np.isnan(x), x, np.minimum(total * np.exp(-a * a) * 2 / root, 1)), x)


def _logistic(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


_FUNCTIONS = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atanh": np.arctanh,
    "atan": np.arctan,
    "cbrt": np.cbrt, "cosine": np.cos, "cosh": np.cosh, "erf": _erf, "exponential": np.exp,
    "exponential-minus-one": np.expm1, "log": np.log, "log-plus-one": np.log1p, "logistic": _logistic,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sine": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "power": np.power,
    "atan2": lambda y, x: complex_math.arctan2(y, x) if y.dtype.kind == "c" else np.arctan2(y, x),
}  # fmt: skip


# -- measuring ---------------------------------------------------------------------------------------------------------


def measure(t: ElementType, target: str, count: int = COUNT) -> list[Error]:
    """Every function of a type on one target."""
    found = []
    for op in functions():
        arrays = inputs(op, t, count)
        p = Program()
        operands = tuple(p.parameter(t, x.shape, x) for x in arrays)
        p.output(op, p.op(op, t, arrays[0].shape, operands), t, arrays[0].shape)
        try:
            root = p.root()
        except Exception:  # noqa: BLE001 (HLO has no such function of this type)
            continue
        (got,), _ = emit_and_run(root, p.inputs, target)
        error = distance(got, exact(op, t, arrays), t)
        worst = int(np.argmax(error))
        found.append(Error(op.name, t.name, target, float(error[worst]), ", ".join(str(x[worst]) for x in arrays)))
    return found


def measure_libdevice(t: ElementType, count: int = COUNT) -> list[Error]:
    """Every function of a real type by libdevice's own code."""
    found = []
    for op in functions():
        if op.name in libdevice_host.NAMES:
            arrays = inputs(op, t, count)
            error = distance(libdevice_host.run(op.name, arrays), exact(op, t, arrays), t)
            worst = int(np.argmax(error))
            where = ", ".join(str(x[worst]) for x in arrays)
            found.append(Error(op.name, t.name, "libdevice", float(error[worst]), where))
    return found


def distance(got: np.ndarray, want: np.ndarray, t: ElementType) -> np.ndarray:
    """In units of the last place of the exact value (complex: of its modulus); infinite for a wrong NaN or infinity."""
    info = ml_dtypes.finfo(t.component.dtype)
    wide = want.real.dtype.type
    with np.errstate(all="ignore"):
        size = np.abs(want)
        unit = np.ldexp(wide(1), np.maximum(np.frexp(size)[1] - 1, info.minexp) - info.nmant)
        if t.is_complex:
            near = np.isfinite(got) & np.isfinite(want)
            return np.where(near, np.abs(got.astype(want.dtype) - want) / unit, np.where(np.isfinite(want), np.inf, 0))
        g, near = got.astype(wide), want.astype(t.dtype).astype(wide)
        error = np.abs(g - want) / unit
        # the greatest number and infinity lie beside each other
        beside = np.isinf(g) & (size > float(info.max) * (1 - 4 * float(info.eps))) & (np.sign(g) == np.sign(want))
        beside |= (
            np.isinf(near) & (np.abs(g) >= float(info.max) * (1 - 4 * float(info.eps))) & (np.sign(g) == np.sign(want))
        )
        error = np.where(g == near, np.minimum(np.where(np.isnan(error), 0.5, error), 0.5), error)
        error = np.where(beside & (g != near), 1.0, error)
        error = np.where(np.isnan(near) | np.isnan(g), np.where(np.isnan(near) & np.isnan(g), 0.0, np.inf), error)
    return error


# -- the page ----------------------------------------------------------------------------------------------------------

_INTRODUCTION = """# How exact the functions are

Largest errors found, in units of the last place (ULP) of the exact value; of complex functions, of the modulus of the
exact value. A correctly rounded result is off by at most 0.5. Written by `python -m tests.codegen.accuracy --write`:
all values of f16 and bf16; {count} of the others, of every exponent and sign, denormals, infinities and huge arguments
included, many of them near 0, near 1 and where the functions are mostly used; complex numbers with parts between
0.0003 and 9.

Real functions are the inline library's (`heron/codegen/llvm/inline`), which the simulated GPU calls under libdevice's
names. A GPU calls libdevice itself: the last table runs its bitcode on this machine, the instructions that a GPU
approximates (`ex2.approx`, `rcp.approx`, …) correctly rounded. f16 and bf16 compute in f32 and round once.

Complex `power` of c64 computes in f64, because the exponential turns errors of its argument into errors of the result;
that of c128 cannot. `logistic` loses digits beside its poles, where `1 + exp(-z)` cancels. Complex `atan2` is the
formula `-i·log((x + iy) / √(x² + y²))` and loses those that cancel where the angle is small.
`divide` is Smith's method, as XLA:CPU's: beyond half of the largest number sums on its way overflow, and a divisor of
denormal parts has their few digits.
"""


def page(errors: list[Error], count: int) -> str:
    """The text of docs/reference/accuracy.md."""
    lines = [_INTRODUCTION.format(count=f"{count:,}")]
    for target, kinds in (*((target, (*REAL, *COMPLEX)) for target in TARGETS), ("libdevice", (types.F32, types.F64))):
        lines += [f"\n## {target}\n", "| function | " + " | ".join(t.name for t in kinds) + " |"]
        lines.append("|---|" + "---:|" * len(kinds))
        cells = {(e.op, e.type): e for e in errors if e.target == target}
        for op in dict.fromkeys(e.op for e in errors if e.target == target):
            found = [cells.get((op, t.name)) for t in kinds]
            lines.append(f"| {op} | " + " | ".join("" if e is None else f"{e.ulps:.2f}" for e in found) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; 1 when a real function of heron's own is off by more than 2 ULP."""
    parser = argparse.ArgumentParser(prog="python -m tests.codegen.accuracy", description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/reference/accuracy.md")
    parser.add_argument("--count", type=int, default=COUNT, help="values of a type that is not swept whole")
    parser.add_argument("--type", default="", help="only these types, comma-separated")
    chosen = parser.parse_args(arguments)
    wanted = [t for t in (*REAL, *COMPLEX) if not chosen.type or t.name in chosen.type.split(",")]
    errors = []
    for target in (*TARGETS, "libdevice"):
        for t in wanted:
            if target != "libdevice":
                found = measure(t, target, chosen.count)
            else:
                found = measure_libdevice(t, chosen.count) if t in (types.F32, types.F64) else []
            for e in found:
                errors.append(e)
                print(f"{e.target:10} {e.type:5} {e.op:24} {e.ulps:9.3f}  at {e.where}", flush=True)
    if chosen.write:
        PAGE.write_text(page(errors, chosen.count))
    return any(e.ulps > 2.0 for e in errors if not e.type.startswith("c") and e.target != "libdevice")


if __name__ == "__main__":
    sys.exit(main())
