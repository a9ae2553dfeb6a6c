"""divide-by-constants: quotients and remainders of 64-bit integers, against Python's, and what stays a division."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.transforms import divide_by_constants
from tests.codegen.transforms.test_math_lowering import ops

_LOOP = """
builtin.module {{ func.func @f(%x: {type}, %y: {type}, %n: index) -> {type} {{
  %c = arith.constant {divisor} : {type}
  %r = scf.for %k = %n to %n step %n iter_args(%carried = %x) -> ({type}) {{
    {lines}
    scf.yield %q : {type}
  }}
  func.return %r : {type}
}} }}
"""
_DIVISION = "%q = arith.{op} %carried, {by} : {type}"


def kept(op: str, divisor: int, type_: str = "i64", by: str = "%c", lines: str = "") -> bool:
    lines = lines or _DIVISION.format(op=op, by=by, type=type_)
    module = parse_kernel(_LOOP.format(type=type_, divisor=divisor, lines=lines))
    divide_by_constants.run(module)
    module.verify()
    return f"arith.{op}" in ops(module)


@pytest.mark.parametrize("op", ["divui", "divsi", "remui", "remsi"])
def test_only_what_llvm_has_no_vectors_for_becomes_products(op: str) -> None:
    assert not kept(op, 7) and not kept(op, 301)
    assert kept(op, 8) and kept(op, 7, by="%y") and kept(op, 7, type_="i32")
    narrow = (
        f"%s = arith.trunci %carried : i64 to i32\n %w = arith.extui %s : i32 to i64\n %q = arith.{op} %w, %c : i64"
    )
    assert kept(op, 7, lines=narrow)


def test_indices_stay() -> None:
    assert kept("divui", 7, type_="index")


_EDGES = [0, 1, 2, 3, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1]
_NUMBERS = st.one_of(st.sampled_from(_EDGES), st.integers(0, 2**64 - 1), st.integers(0, 64).map(lambda k: 2**k % 2**64))


def _by(divisors: list[int], type_: str, size: int) -> str:
    lines = [f"x = {type_}[{size}] parameter(0)"]
    for n, d in enumerate(divisors):
        lines += [f"k{n} = {type_}[] constant({d})", f"d{n} = {type_}[{size}] broadcast(k{n}), dimensions={{}}"]
        lines += [f"q{n} = {type_}[{size}] divide(x, d{n})", f"r{n} = {type_}[{size}] remainder(x, d{n})"]
    names = [f"{kind}{n}" for n in range(len(divisors)) for kind in "qr"]
    shapes = ", ".join([f"{type_}[{size}]"] * len(names))
    lines.append(f"ROOT t = ({shapes}) tuple({', '.join(names)})")
    return "\n ".join(["HloModule m\nENTRY e {", *lines]) + "\n}"


def _toward_zero(n: int, d: int) -> int:
    return abs(n) // abs(d) * (1 if (n < 0) == (d < 0) else -1)


@settings(max_examples=15)
@given(st.lists(_NUMBERS, min_size=40, max_size=40), st.lists(_NUMBERS, min_size=3, max_size=3), st.booleans())
def test_values(numbers: list[int], divisors: list[int], is_signed: bool) -> None:
    """Numbers at the ends of halves and of the type by any divisors, and by those just beside powers of two."""
    numbers = numbers + [n * d + k & 2**64 - 1 for d in divisors for n in (1, 7) for k in (-1, 0, 1)]
    x = np.array(numbers, np.uint64)
    if is_signed:
        x = x.view(np.int64)
        divisors = [d - 2**64 if d >= 2**63 else d for d in divisors]
    divisors = [d for d in divisors if d not in (0, -1)] or [10]
    program = heron.compile(heron.parse(_by(divisors, "s64" if is_signed else "u64", len(x))), "cpu")
    found = program.run([x])
    for n, d in enumerate(divisors):
        quotients = [_toward_zero(int(v), d) for v in x]
        assert found[2 * n].tolist() == quotients
        assert found[2 * n + 1].tolist() == [int(v) - q * d for v, q in zip(x, quotients, strict=True)]
