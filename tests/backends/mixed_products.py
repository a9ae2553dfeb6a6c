"""Products of any types: dot and convolution of every two operand types with every result type, against the evaluator.

    python -m tests.backends.mixed_products                    all types, on the CPU and the simulated GPU: hours
    python -m tests.backends.mixed_products --every 7          one pair of operand types in seven
    python -m tests.backends.mixed_products --types s8,f32,c64 --targets cpu

Values are such that sums are exact in each type, so results must be equal bit for bit.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np

import heron
from heron.compiling import compile
from heron.hlo.ir import types
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType
from tests.backends.agree import TARGETS

#: types of numbers
TYPES = [t.name for t in types.ALL if t.kind not in ("token", "opaque")]

#: shapes of operands and result, and the op; T stands for the result's type
FORMS = {
    "matrices": ("[3,4]", "[4,5]", "[3,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "long sums": ("[3,70]", "[70,2]", "[3,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "vectors": ("[7]", "[7]", "[] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "vector and matrix": ("[7]", "[7,3]", "[3] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "outer": ("[3]", "[4]", "[3,4] dot(p, q), lhs_contracting_dims={}, rhs_contracting_dims={}"),
    "batch": ("[2,3]", "[2,3]", "[2] dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, "
              "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    "convolution": ("[1,2,5]", "[3,2,4]", "[1,4,3] convolution(p, q), window={size=3}, dim_labels=bf0_0io->bf0"),
    "padded convolution": ("[1,1,4,4]", "[3,3,1,1]", "[1,1,4,4] convolution(p, q), "
                           "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_01io->bf01"),
}  # fmt: skip


def program(lhs: str, rhs: str, results: Sequence[str], form: str) -> Module:
    """The product in one form with each of the result types."""
    x, y, op = FORMS[form]
    lines = [f"  r{n} = {t}{op}" for n, t in enumerate(results)]
    shapes = ", ".join(t + op[: op.index(" ")] for t in results)
    names = ", ".join(f"r{n}" for n in range(len(results)))
    return heron.parse(
        f"HloModule m\n\nENTRY main {{\n  p = {lhs}{x} parameter(0)\n  q = {rhs}{y} parameter(1)\n"
        + "\n".join(lines)
        + f"\n  ROOT all = ({shapes}) tuple({names})\n}}\n"
    )


def values(t: ElementType, dims: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Few digits: multiples of a half where the type has them, sparse, so that sums have few digits too."""
    low = 0 if t.kind in ("pred", "unsigned") or t.bits == 1 else -1 if t.bits == 2 else -3
    high = 1 if t.bits <= 2 or t.kind == "pred" else 3
    found = random.integers(low, high, dims, endpoint=True) * (random.random(dims) < 0.7)
    if t is types.F8E8M0FNU:
        return np.exp2(found).astype(np.float32).astype(t.dtype)
    if t.is_float or t.is_complex:
        found = found / 2
    if t.is_complex:
        found = found + 1j * random.integers(-2, 2, dims, endpoint=True)
    return (found.astype(np.float32) if t.is_float else found).astype(t.dtype)


def inputs(module: Module, seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [values(p.shape.element_type, p.shape.dims, random) for p in module.entry.parameters]


def differences(lhs: str, rhs: str, results: Sequence[str], target: str, forms: Sequence[str] = ()) -> Iterator[str]:
    """The products of these operand types whose results differ from the evaluator's."""
    for form in forms or FORMS:
        module = program(lhs, rhs, results, form)
        arrays = inputs(module)
        wanted = heron.evaluate(module, *arrays)
        for t, found, value in zip(results, compile(module, target).run(arrays), wanted, strict=True):
            if found.dtype != value.dtype or not np.array_equal(_bits(found), _bits(value)):
                yield f"{form}: {t} of {lhs} and {rhs} on {target}: {found.ravel()[:4]} for {value.ravel()[:4]}"


def _bits(a: np.ndarray) -> np.ndarray:
    """The bytes, either zero as zero and any NaN as one."""
    if types.of_dtype(a.dtype).is_float or a.dtype.kind == "c":
        with np.errstate(invalid="ignore"):
            a = np.where(np.isnan(a), a.dtype.type(np.nan), a + a.dtype.type(0))
    return np.frombuffer(np.ascontiguousarray(a).tobytes(), np.uint8)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.backends.mixed_products")
    parser.add_argument("--types", default=",".join(TYPES), help="operand and result types")
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--every", type=int, default=1, help="one pair of operand types in that many")
    given = parser.parse_args()
    names = given.types.split(",")
    pairs = [(x, y) for x in names for y in names][:: given.every]
    count = 0
    for x, y in pairs:
        for target in given.targets.split(","):
            for line in differences(x, y, names, target):
                print(line, flush=True)
                count += 1
    print(f"{len(pairs)} pairs of operand types, {len(names)} result types, {len(FORMS)} forms: {count} differ")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
