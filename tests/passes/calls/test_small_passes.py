"""The small passes about libraries: values, what they leave, and what they say."""

from __future__ import annotations

import numpy as np
import pytest

from heron import Options, targets
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.calls import gemm
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext


def after(body: str, *names: str, libraries: str = "auto") -> tuple[Module, PassContext]:
    module = parse("HloModule m\nENTRY main {\n" + body + "\n}\n", verify=True)
    before = ValueCheck(module)
    ctx = PassContext(Options(libraries=libraries), target=targets.get("sm_90"))
    for name in names:
        registry.get(name).run(module, ctx)
        verify(module)
        before.after(name, module)
    return module, ctx


def opcodes(module: Module) -> list[str]:
    return [i.opcode for i in module.entry.post_order() if i.opcode != "parameter"]


@pytest.mark.parametrize(
    ("x", "y", "result", "dims"),
    [
        ("16", "16", "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("16", "16,4", "4", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (
            "2,16",
            "2,16",
            "2",
            "lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ),
    ],
)
def test_vectors_become_matrices(x: str, y: str, result: str, dims: str) -> None:
    body = f"x = f32[{x}] parameter(0)\ny = f32[{y}] parameter(1)\nROOT r = f32[{result}] dot(x, y), {dims}"
    module, _ = after(body, "gemv-rewriter")
    (dot,) = [i for i in module.instructions() if i.opcode == "dot"]
    assert dot.shape.rank == len(dot.lhs_batch_dims) + 2


def test_a_broadcast_matrix_is_read_once() -> None:
    body = """x = f32[4,3,8] parameter(0)
m = f32[8,2] parameter(1)
y = f32[4,8,2] broadcast(m), dimensions={1,2}
ROOT r = f32[4,3,2] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}"""
    module, _ = after(body, "gemm-rewriter", "gemm-broadcast-folding")
    assert opcodes(module) == ["custom-call"]
    assert gemm.read(module.entry.root).rhs_batch == ()


def test_a_broadcast_matrix_stays_where_a_contracts_ahead_of_its_rows() -> None:
    """The batch and the rows of A are no rows of one matrix then, and no library takes the product."""
    body = """x = f32[4,8,3] parameter(0)
m = f32[2,8] parameter(1)
y = f32[4,2,8] broadcast(m), dimensions={1,2}
ROOT r = f32[4,3,2] dot(x, y), lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={2}"""
    module, _ = after(body, "gemm-rewriter", "gemm-broadcast-folding")
    assert gemm.read(module.entry.root).rhs_batch == (0,)


@pytest.mark.parametrize(("m", "k", "n", "pads"), [(8, 32, 16, 0), (7, 30, 16, 2), (8, 32, 18, 1)])
def test_s8_is_padded_to_what_the_library_does(m: int, k: int, n: int, pads: int) -> None:
    body = f"x = s8[{m},{k}] parameter(0)\ny = s8[{k},{n}] parameter(1)\n"
    body += f"ROOT r = s32[{m},{n}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    module, _ = after(body, "cublas-pad-for-gemms")
    assert opcodes(module).count("pad") == pads


@pytest.mark.parametrize(("size", "pads"), [(30, 0), (8190, 2)])
def test_floats_are_padded_where_it_pays(size: int, pads: int) -> None:
    body = f"x = bf16[{size},{size}] parameter(0)\ny = bf16[{size},{size}] parameter(1)\n"
    body += f"ROOT r = bf16[{size},{size}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    module = parse("HloModule m\nENTRY main {\n" + body + "\n}\n")
    ctx = PassContext(Options(), target=targets.get("sm_90"))
    registry.get("cublas-pad-for-gemms").run(module, ctx)
    assert opcodes(module).count("pad") == pads
    assert all(d.cost_before and d.cost_after for d in ctx.trace.decisions)


def spd(*dims: int) -> np.ndarray:
    a = np.random.default_rng(0).standard_normal(dims).astype(np.float32)
    return a @ a.swapaxes(-1, -2) + 8 * np.eye(dims[-1], dtype=np.float32)


@pytest.mark.parametrize("lower", ["true", "false"])
def test_cholesky_by_cusolver(lower: str) -> None:
    text = "a = f32[2,8,8] parameter(0)\nROOT r = f32[2,8,8] cholesky(a), lower=" + lower
    module, _ = after(text, "cusolver-rewriter")
    assert "cholesky" not in opcodes(module)
    good = spd(2, 8, 8)
    bad = good.copy()
    bad[1] = -bad[1]
    plain = parse("HloModule m\nENTRY main {\n" + text + "\n}\n")
    for a in (good, bad):
        (wanted,) = evaluate(plain, a)
        np.testing.assert_allclose(evaluate(module, a)[0], wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(np.asarray(compile(plain, "sim:sm_90")(a)), wanted, rtol=1e-4, atol=1e-5)


def test_cholesky_without_cusolver_stays() -> None:
    text = "a = f32[8,8] parameter(0)\nROOT r = f32[8,8] cholesky(a), lower=true"
    module, ctx = after(text, "cusolver-rewriter", libraries="none")
    assert "cholesky" in opcodes(module) and any("libraries=none" in d.reason for d in ctx.trace.decisions)


@pytest.mark.parametrize(
    "attrs", ["lower=true", "lower=false, unit_diagonal=true", "lower=true, transpose_a=TRANSPOSE"]
)
def test_triangular_solves_as_xla_prints_them(attrs: str) -> None:
    attrs += "" if "transpose_a" in attrs else ", transpose_a=NO_TRANSPOSE"
    text = "a = f32[2,4,4] parameter(0)\nb = f32[2,4,3] parameter(1)\n"
    text += f"ROOT r = f32[2,4,3] triangular-solve(a, b), left_side=true, {attrs}"
    module, _ = after(text, "triangular-solve-rewriter")
    a, b = spd(2, 4, 4), np.ones((2, 4, 3), np.float32)
    (wanted,) = evaluate(parse("HloModule m\nENTRY main {\n" + text + "\n}\n"), a, b)
    np.testing.assert_allclose(np.asarray(compile(module, "sim:sm_90")(a, b)), wanted, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.asarray(compile(module, "cpu")(a, b)), wanted, rtol=1e-4, atol=1e-5)


def test_the_first_proposal_is_noted() -> None:
    body = "x = f32[8,4] parameter(0)\ny = f32[4,2] parameter(1)\n"
    body += "ROOT r = f32[8,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    module, _ = after(body, "gemm-rewriter", "gemm-algorithm-picker")
    assert gemm.read(module.entry.root).selected == 0
