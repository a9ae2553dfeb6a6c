"""Atomics of every type and operation: many threads on one element, as NumPy folds them; swaps compared and not."""

from __future__ import annotations

import functools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.runtime.sim.support import finding, kernel_text, launch

INTEGERS = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64}
FLOATS = {"half": np.float16, "bfloat": ml_dtypes.bfloat16, "float": np.float32, "double": np.float64}
THREADS = 40

Fold = Callable[[np.ndarray], object]
INTEGER_OPS: dict[str, Fold] = {
    "add": np.sum,
    "sub": lambda v: -np.sum(v),
    "and": lambda v: np.bitwise_and.reduce(v, initial=0),
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
    "max": lambda v: max(v.max(), 0),
    "min": lambda v: min(v.min(), 0),
    "umax": lambda v: v.view(f"u{v.itemsize}").max(),
    "umin": lambda v: 0,
    "xchg": lambda v: v[-1],
    "nand": lambda v: functools.reduce(lambda a, b: ~(a & b), v, v.dtype.type(0)),
}
FLOAT_OPS: dict[str, Fold] = {
    "fadd": np.sum,
    "fsub": lambda v: -np.sum(v),
    "fmax": lambda v: max(v.max(), 0),
    "fmin": lambda v: min(v.min(), 0),
    "xchg": lambda v: v[-1],
}


def body(type_: str, work: str) -> str:
    return f"""  %pa = getelementptr {type_}, ptr %a, i32 %t
  %v = load {type_}, ptr %pa
  %q = getelementptr {type_}, ptr %out, i32 0
{work}"""


def run(type_: str, dtype: type, work: str, values: np.ndarray, checks: str) -> np.ndarray:
    out = np.zeros(1, dtype)
    text = kernel_text(body(type_, work), "ptr %a, ptr %out")
    launch(text, values, out, block=(len(values), 1, 1), checks=checks)
    return out


CASES = [(t, d, op, f) for t, d in INTEGERS.items() for op, f in INTEGER_OPS.items()]
CASES += [(t, d, op, f) for t, d in FLOATS.items() for op, f in FLOAT_OPS.items()]


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS])
def test_operations(type_: str) -> None:
    for name, dtype, op, fold in CASES:
        if name != type_:
            continue
        # small whole numbers: sums are exact in every type and order
        values = (np.arange(THREADS) * 7 % 9 - 4).astype(dtype)
        wide = values if name.startswith("i") else values.astype(np.float64)
        with np.errstate(over="ignore"):
            wanted = np.asarray(fold(wide)).astype(dtype)
        work = f'  %o = atomicrmw {op} ptr %q, {name} %v syncscope("device") monotonic'
        for checks in ("", "all"):
            got = run(name, dtype, work, values, checks)[0]
            assert got == wanted, (name, op, checks, got, wanted)


@pytest.mark.parametrize("type_", INTEGERS)
def test_compare_and_swap_loops(type_: str) -> None:
    """The largest of all values by a loop of swaps; the loop's first read is no race with the swaps."""
    size = np.dtype(INTEGERS[type_]).itemsize
    work = f"""  %first = load {type_}, ptr %q
  br label %loop
loop:
  %seen = phi {type_} [ %first, %entry ], [ %is, %loop ]
  %more = icmp sgt {type_} %v, %seen
  %new = select i1 %more, {type_} %v, {type_} %seen
  %pair = cmpxchg ptr %q, {type_} %seen, {type_} %new syncscope("device") monotonic monotonic, align {size}
  %is = extractvalue {{ {type_}, i1 }} %pair, 0
  %ok = extractvalue {{ {type_}, i1 }} %pair, 1
  br i1 %ok, label %end, label %loop
end:"""
    values = (np.arange(THREADS) * 37 % 101).astype(INTEGERS[type_])
    for checks in ("", "all"):
        assert run(type_, INTEGERS[type_], work, values, checks)[0] == values.max()


def test_atomics_are_held_against_their_buffer() -> None:
    text = kernel_text("  %q = getelementptr i32, ptr %out, i32 9\n  %o = atomicrmw add ptr %q, i32 1 monotonic")
    error = finding(text, np.zeros(4, np.int32))
    assert error.code == "RUN075" and str(error.where).startswith("atomic by block (0, 0, 0)")
