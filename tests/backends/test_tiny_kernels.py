"""Kernels that take next to nothing of a program's time are compiled without LLVM's optimiser, to the same values."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.backends.compiler import Compilation
from heron.backends.cpu import machine, quick_code
from heron.options import Options
from heron.targets import get
from heron.trace import Trace

ELEMENTWISE = """HloModule m
ENTRY e {
  x = f32[%d] parameter(0)
  y = f32[%d] tanh(x)
  ROOT z = f32[%d] multiply(y, x)
}"""
SUM = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[90] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[] reduce(x, zero), dimensions={0}, to_apply=add
}"""
LOOP = """HloModule m
body {
  s = (s32[], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[9] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[9] tanh(x)
  ROOT t = (s32[], f32[9]) tuple(next, y)
}
condition {
  s = (s32[], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(%d)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[9] parameter(0)
  s = (s32[], f32[9]) tuple(z, x)
  ROOT w = (s32[], f32[9]) while(s), condition=condition, body=body
}"""


MIXED = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[300,300] parameter(0)
  w = f32[30] parameter(1)
  u = f32[37] parameter(2)
  zero = f32[] constant(0)
  y = f32[300,300] tanh(x)
  v = f32[30] negate(w)
  turned = f32[30] reverse(v), dimensions={0}
  sum = f32[] reduce(u, zero), dimensions={0}, to_apply=add
  ROOT t = (f32[300,300], f32[30], f32[]) tuple(y, turned, sum)
}"""


def modules(text: str) -> list[tuple[bool, bool]]:
    """For each module, the program's last, whether it is compiled without the optimiser, and whether it has kernels."""
    compilation = Compilation(heron.parse(text), get("cpu"), Options(), Trace())
    assert isinstance(compilation.machine, machine.CpuMachine)
    found = compilation.machine.modules(compilation.lowered, "m")
    return [(jit.shaped, "noalias align" in text) for name, text, jit in found if name.startswith("m")]


def is_shaped(text: str) -> bool:
    """Whether the module of the program's own is compiled without the optimiser."""
    return modules(text)[-1][0]


def test_which_modules() -> None:
    assert is_shaped(ELEMENTWISE % (30, 30, 30))
    assert not is_shaped(ELEMENTWISE % (30_000, 30_000, 30_000))
    assert not is_shaped(LOOP % 5000)  # it runs many times
    assert is_shaped(LOOP % 8)
    assert not is_shaped(SUM)  # the bits of a sum do not depend on the program around it


def test_kernels_that_take_time_are_in_modules_of_their_own() -> None:
    assert [shaped for shaped, _ in modules(MIXED)] == [False, True]


def test_a_decision_for_each_tiny_kernel_that_is_no_sum() -> None:
    found = [d for d in heron.compile(heron.parse(MIXED)).trace.decisions if d.rule == "quick-code"]
    assert len(found) == 1 and all(d.ok and "µs of a call" in d.reason for d in found)


def test_what_a_kernel_computes_again_counts() -> None:
    """Rounds of shortest paths in one kernel: each reads its row and its column of the round before."""

    def round_(k: int) -> str:
        return f"""
  c{k} = f32[12,1] slice(x{k}), slice={{[0:12], [{k}:{k + 1}]}}
  r{k} = f32[1,12] slice(x{k}), slice={{[{k}:{k + 1}], [0:12]}}
  d{k} = f32[12] reshape(c{k})
  s{k} = f32[12] reshape(r{k})
  a{k} = f32[12,12] broadcast(d{k}), dimensions={{0}}
  b{k} = f32[12,12] broadcast(s{k}), dimensions={{1}}
  y{k} = f32[12,12] add(a{k}, b{k})
  {"ROOT " if k == 2 else ""}x{k + 1} = f32[12,12] minimum(x{k}, y{k})"""

    def program(rounds: int) -> str:
        body = "".join(map(round_, range(3 - rounds, 3)))
        return f"""HloModule m
f {{ x{3 - rounds} = f32[12,12] parameter(0) {body} }}
ENTRY e {{ x = f32[12,12] parameter(0) ROOT k = f32[12,12] fusion(x), kind=kLoop, calls=f }}"""

    assert not is_shaped(program(3)) and is_shaped(program(1))


def test_all_of_them_together_take_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (True, True) in modules(MIXED)
    monkeypatch.setattr(quick_code, "_TOGETHER", 0.0)
    assert (True, True) not in modules(MIXED)


def test_a_program_in_both_kinds_of_modules_has_the_right_values() -> None:
    x = np.linspace(-3, 3, 90_000, dtype=np.float32).reshape(300, 300)
    arguments = x, np.arange(30, dtype=np.float32), np.linspace(0, 1, 37, dtype=np.float32)
    module = heron.parse(MIXED)
    for ours, expected in zip(heron.compile(module)(*arguments), heron.evaluate(module, *arguments), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 7, 64, 400])
def test_the_same_bits(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = heron.parse(ELEMENTWISE % (n, n, n))
    x = np.linspace(-3, 3, n, dtype=np.float32)
    quick = heron.compile(module)(x)
    monkeypatch.setattr(quick_code, "_EACH", 0.0)
    assert not is_shaped(ELEMENTWISE % (n, n, n))
    np.testing.assert_array_equal(heron.compile(module)(x), quick)


CHOLESKY = "ENTRY e { x = %s[%d,%d,%d] parameter(0) ROOT c = %s[%d,%d,%d] cholesky(x), lower=true }"
SOLVE = """ENTRY e {
  a = %s[%d,%d,%d] parameter(0)
  b = %s[%d,%d,%d] negate(a)
  ROOT x = %s[%d,%d,%d] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
}"""
LU = """ENTRY e {
  a = %s[%d,%d,%d] parameter(0)
  ROOT lu = (%s[%d,%d,%d], s32[{0},{1}], s32[{0}]) custom-call(a), custom_call_target="lapack_{2}getrf_ffi"
}"""
CHOLESKY_IN_A_LOOP = LOOP.replace("f32[9]", "f32[2,2]").replace("tanh(x)", "cholesky(x), lower=true") % 8


def linear(text: str, element: str, *dims: int) -> str:
    batch, n, _ = dims
    letter = {"f32": "s", "f64": "d", "c64": "c", "c128": "z"}[element]
    filled = text.replace("{0}", str(batch)).replace("{1}", str(n)).replace("{2}", letter)
    return "HloModule m\n" + filled % ((element, *dims) * text.count("%s"))


def test_the_program_is_optimised_if_its_own_functions_compute() -> None:
    """Factorisations of small matrices are code of the program's own, which has no kernel that speaks for them."""
    assert is_shaped(linear(CHOLESKY, "f32", 1, 3, 3))
    assert not is_shaped(linear(CHOLESKY, "f32", 1000, 6, 6))
    assert not is_shaped(CHOLESKY_IN_A_LOOP)
    beside = linear(CHOLESKY, "f32", 1000, 6, 6).replace("ROOT c", "u = f32[37] parameter(1) t = f32[37] tanh(u) c")
    beside = beside.replace("true }", "true ROOT r = (f32[1000,6,6], f32[37]) tuple(c, t) }")
    assert [shaped for shaped, _ in modules(beside)] == [True, False]


@pytest.mark.parametrize("element", ["f32", "f64", "c64", "c128"])
@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("text", [CHOLESKY, SOLVE, LU])
def test_small_matrices_have_the_same_bits(text: str, n: int, element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, kind = np.random.default_rng(n), {"f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16"}[element]
    x = rng.normal(size=(2, n, n)) + (1j * rng.normal(size=(2, n, n)) if "c" in kind else 0)
    x = (x @ x.conj().swapaxes(1, 2)).astype(kind)
    module = heron.parse(linear(text, element, 2, n, n))
    found = list[bytes]()
    for answer in False, True:
        monkeypatch.setattr(quick_code, "computes", lambda _, answer=answer: answer)
        made = heron.compile(module)(x)
        found.append(b"".join(np.asarray(a).tobytes() for a in (made if isinstance(made, (tuple, list)) else [made])))
    assert found[0] == found[1]


QR = """HloModule m
ENTRY e {
  a = f32[40,60,50] parameter(0)
  b = f32[40,60,50] negate(a)
  q = (f32[40,60,50], f32[40,50]) custom-call(a), custom_call_target="lapack_sgeqrf_ffi"
  r = (f32[40,60,50], f32[40,50]) custom-call(b), custom_call_target="lapack_sgeqrf_ffi"
  ROOT t = ((f32[40,60,50], f32[40,50]), (f32[40,60,50], f32[40,50])) tuple(q, r)
}"""


@pytest.mark.parametrize("text", [QR, linear(CHOLESKY, "f32", 40, 60, 60), linear(LU, "c128", 40, 60, 60)])
def test_what_goes_with_routines_of_lapack_is_shared_code(text: str) -> None:
    """Matrices are turned and triangles zeroed beside a routine, however much there is: by code compiled once."""
    assert not quick_code.computes(Compilation(heron.parse(text), get("cpu"), Options(), Trace()).lowered.thunks)


def test_calls_of_lapack_alike_are_one_function() -> None:
    compilation = Compilation(heron.parse(QR), get("cpu"), Options(), Trace())
    assert isinstance(compilation.machine, machine.CpuMachine)
    _, text, _ = compilation.machine.modules(compilation.lowered, "m")[-1]
    assert text.count("call void @heron_sgeqrf") == 1
