"""Expanders against XLA:CPU's own results of the ops they replace: the evaluator runs what they make of each case."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from tests.conformance import drawn, test_dot, test_indexing, test_sort
from tests.conformance import test_transforms as transforms
from tests.conformance.case import Case, Closeness
from tests.conformance.runner import judge, xla_values

RNG = np.random.default_rng(11)
#: factorisations of matrices around 1
NEAR = {"f32": Closeness(ulps=64, floor=4e-5, zeros=False), "f64": Closeness(ulps=64, floor=1e-12, zeros=False)}


def agree(cases: Sequence[Case], name: str, **options: object) -> None:
    """Every case the pass changes gives what XLA gives for it as it was."""
    expanded = []
    for case in cases:
        module = case.module.clone()
        if PassContext().run_pass(registry.get(name, **options), module):
            verify(module)
            expanded.append((case, module))
    assert expanded, f"{name} has nothing to do in {len(cases)} cases"
    wrong = []
    for (case, module), theirs in zip(expanded, xla_values([c for c, _ in expanded]), strict=True):
        if isinstance(theirs, str):
            continue  # XLA refuses it: tests/conformance says where it may
        outcome = judge(case, evaluate(module, *case.inputs), theirs)
        if outcome.verdict == "differ":
            wrong.append(f"{case.name}: {outcome.words}")
    assert not wrong, "\n".join(wrong[:20])


def _drawn(op: str) -> list[Case]:
    return [c for c in drawn.cases(24, first=400) if c.op == op]


CASES: dict[str, tuple[Callable[[], Sequence[Case]], str, dict[str, object]]] = {
    "cholesky": (lambda: transforms.cholesky_cases()[::3], "cholesky-expander", {}),
    "triangular solve": (lambda: transforms.solve_cases()[::7], "triangular-solve-expander", {}),
    "batch norm": (lambda: transforms.norm_cases()[::5], "batchnorm-expander", {}),
    "gather": (lambda: test_indexing.gather_cases()[::3], "gather-expander", {}),
    "gather, drawn": (lambda: _drawn("gather"), "gather-expander", {}),
    "gather of one slice": (test_indexing.gather_cases, "gather-expander", {"mode": "simple"}),
    "scatter": (lambda: test_indexing.scatter_cases()[::5], "scatter-expander", {}),
    "scatter, drawn": (lambda: _drawn("scatter"), "scatter-expander", {}),
    "scatter of one update": (test_indexing.scatter_cases, "scatter-expander", {"mode": "simple"}),
    "scatter in any order": (lambda: test_indexing.scatter_cases()[1::5], "scatter-expander", {"mode": "indeterminate"}),
    "stable sort": (lambda: test_sort.sort_cases()[::3], "stable-sort-expander", {}),
    "sort, drawn": (lambda: _drawn("sort"), "stable-sort-expander", {}),
    "total order": (test_sort.sort_cases, "comparison-expander", {}),
    "topk": (test_sort.topk_cases, "topk-decomposer", {}),
    "dot": (lambda: test_dot.dot_cases()[::4], "dot-decomposer", {}),
    "dot, drawn": (lambda: _drawn("dot"), "dot-decomposer", {}),
    "reduce-window": (lambda: [_running(n, reverse) for n in (40, 67) for reverse in (False, True)], "reduce-window-rewriter", {}),
    "map": (lambda: _maps(), "map-inliner", {}),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_expanded(what: str) -> None:
    cases, name, options = CASES[what]
    agree(cases(), name, **options)


def _running(n: int, reverse: bool) -> Case:
    pad = f"0_{n - 1}" if reverse else f"{n - 1}_0"
    body = f""" p = f32[3,{n}] parameter(0)
 z = f32[] constant(0)
 ROOT r = f32[3,{n}] reduce-window(p, z), window={{size=1x{n} pad=0_0x{pad}}}, to_apply=add"""
    before = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b)\n}\n"
    array = RNG.integers(-9, 9, (3, n)).astype(np.float32)
    return Case("reduce-window", "f32", body, [array], f"{n} {reverse}", before)


def _maps() -> list[Case]:
    before = """f {
 a = T[] parameter(0)
 b = T[] parameter(1)
 two = T[] constant(2)
 m = T[] multiply(a, two)
 less = pred[] compare(m, b), direction=LT
 ROOT r = T[] select(less, m, b)
}
"""
    body = " p = T[SHAPE] parameter(0)\n q = T[SHAPE] parameter(1)\n ROOT r = T[SHAPE] map(p, q), dimensions={DIMS}, to_apply=f"
    shapes = {"": "", "5": "0", "2,0,3": "0,1,2", "2,3": "0,1"}
    return [
        Case(
            "map", t, body.replace("T[", f"{t}[").replace("SHAPE", s).replace("DIMS", d), before=before.replace("T[", f"{t}[")
        )
        for t in ("f32", "bf16", "s32", "u8", "f64")
        for s, d in shapes.items()
    ]  # fmt: skip


# -- random bits -----------------------------------------------------------------------------------------------------
STATES = {"rng_philox": (2, 3), "rng_three_fry": (2,)}
BITS = ("u32[7]", "u32[4,6]", "u64[5]", "u64[]", "u32[3,5]", "u32[0]", "u32[2,7,0]")


@pytest.mark.parametrize("algorithm", STATES)
def test_bits(algorithm: str) -> None:
    """Bit for bit what XLA:CPU draws, and the state it leaves."""
    words = np.array([0x0123456789ABCDEF, 0xFFFFFFFFFFFFFFFF, 7], np.uint64)
    cases = [
        Case(
            "rng-bit-generator",
            "u64",
            f" s = u64[{n}] parameter(0)\n ROOT r = (u64[{n}], {bits}) rng-bit-generator(s), algorithm={algorithm}",
            [words[:n]],
            f"{algorithm} {n} {bits}",
        )
        for n in STATES[algorithm]
        for bits in BITS
    ]
    agree(cases, "rng-bit-generator-expander")


# -- factorisations by LAPACK --------------------------------------------------------------------------------------------
def _matrices(t: str, dims: tuple[int, ...]) -> dict[str, np.ndarray]:
    dtype = {"f32": np.float32, "f64": np.float64}[t]
    full = RNG.normal(size=dims)
    thin = full.copy()
    thin[..., :, -1] = thin[..., :, 0]  # a column twice
    return {"full": full.astype(dtype), "rank deficient": thin.astype(dtype), "zero": np.zeros(dims, dtype)}


@pytest.mark.parametrize("t", NEAR)
@pytest.mark.parametrize("dims", [(2, 5, 3), (3, 5), (4, 4), (1, 1), (0, 3, 2)])
def test_qr(t: str, dims: tuple[int, ...]) -> None:
    taus = ",".join(map(str, (*dims[:-2], min(dims[-2:]))))
    rank, letter = len(dims), {"f32": "s", "f64": "d"}[t]
    columns = ",".join(map(str, (rank - 2, rank - 1, *reversed(range(rank - 2)))))  # as LAPACK has them
    whole = f"{t}[{','.join(map(str, dims))}]{{{columns}}}"
    body = f""" a = {whole} parameter(0)
 ROOT r = ({whole}, {t}[{taus}]) custom-call(a), custom_call_target="lapack_{letter}geqrf_ffi",
   operand_layout_constraints={{{whole}}}, api_version=API_VERSION_TYPED_FFI"""
    cases = [
        Case("qr", t, body, [a], f"{dims} {kind}", close=NEAR[t])
        for kind, a in _matrices(t, dims).items()
        if kind != "rank deficient"  # the last reflection of those is noise
    ]
    agree(cases, "qr-expander")


@pytest.mark.parametrize("t", NEAR)
@pytest.mark.parametrize("dims", [(2, 4, 4), (5, 5), (1, 1)])
def test_eigenvalues(t: str, dims: tuple[int, ...]) -> None:
    shape = ",".join(map(str, dims))
    routine = {"f32": "ssyevd", "f64": "dsyevd"}[t]
    whole = f"({t}[{shape}], {t}[{','.join(map(str, dims[:-1]))}], s32[{','.join(map(str, dims[:-2]))}])"
    body = f""" a = {t}[{shape}] parameter(0)
 c = {whole} custom-call(a), custom_call_target="lapack_{routine}_ffi", api_version=API_VERSION_TYPED_FFI,
   backend_config="{{mode = 86 : ui8, uplo = 76 : ui8}}"
 ROOT r = {t}[{",".join(map(str, dims[:-1]))}] get-tuple-element(c), index=1"""
    matrices = {kind: a + np.swapaxes(a, -1, -2) for kind, a in _matrices(t, dims).items()}
    agree(
        [Case("eigh", t, body, [a], f"{shape} {kind}", close=NEAR[t]) for kind, a in matrices.items()], "eigh-expander"
    )
