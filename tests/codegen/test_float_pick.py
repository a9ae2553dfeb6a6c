"""The extremum of two floats on a CPU: by comparisons, with the evaluator's zeros and NaN."""

from __future__ import annotations

import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests.codegen.run_kernel import root_fusion

#: the other operand of an extremum
OTHERS = {
    "array": "ROOT r = [N] EXTREMUM(a, b)",
    "computed": "d = [N] abs(b) ROOT r = [N] EXTREMUM(a, d)",
    "constant": "one = [] constant(1) c = [N] broadcast(one), dimensions={} d = [N] multiply(a, b) "
    "ROOT r = [N] EXTREMUM(d, c)",
}


def program(op: str, type_: str, n: int, other: str) -> str:
    body = OTHERS[other].replace("[", f"{type_}[").replace("N", str(n)).replace("EXTREMUM", op)
    return f"""HloModule m
f {{ a = {type_}[{n}] parameter(0) b = {type_}[{n}] parameter(1) {body} }}
ENTRY e {{ a = {type_}[{n}] parameter(0) b = {type_}[{n}] parameter(1)
  ROOT k = {type_}[{n}] fusion(a, b), kind=kLoop, calls=f }}"""


@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize("type_", ["f32", "f64"])
@pytest.mark.parametrize("other", OTHERS)
def test_any_two(op: str, type_: str, other: str) -> None:
    dtype = np.float32 if type_ == "f32" else np.float64
    some = np.array([0, 1, 2.5, np.inf, np.finfo(dtype).max, np.finfo(dtype).tiny, np.nan], dtype)
    some = np.concatenate([some, -some])
    a, b = np.repeat(some, some.size), np.tile(some, some.size)
    source = program(op, type_, a.size, other)
    module = parse(source)
    found, (wanted,) = np.asarray(compile(module)(a, b)), evaluate(module, a, b)
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


@pytest.mark.parametrize(
    ("target", "other", "by_llvm"),
    [("cpu", "array", False), ("cpu", "computed", False), ("cpu", "constant", True), ("sm_90", "array", True)],
)
def test_where_llvm_has_code_that_is_long(target: str, other: str, by_llvm: bool) -> None:
    kernel = emit_fusion(root_fusion(program("maximum", "f32", 100, other)), "k", targets.get(target))
    assert ("arith.maximumf" in str(kernel.module)) == by_llvm
