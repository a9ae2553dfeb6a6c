"""Fusions that came with a program: those no kernel can do are taken apart, and the program gives what it means."""

from __future__ import annotations

import re

import numpy as np
import pytest

import heron
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.fusion.fusion_legalizer import why_no_kernel

_ROWS = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
_SCATTER = f"s = f32[8,4] scatter(%s, n, u), {_ROWS}, to_apply=add"

#: lines of the body over x f32[8,4], n s32[3,1], u f32[3,4]; the result's type; whether a kernel may do it
BODIES = {
    "alone": (f"ROOT {_SCATTER % 'x'}", "f32[8,4]", True),
    "a view": (f"v = f32[8,4] bitcast(x)\n{_SCATTER % 'v'}\nROOT r = f32[32] reshape(s)", "f32[32]", True),
    "computed operand": (f"y = f32[8,4] negate(x)\nROOT {_SCATTER % 'y'}", "f32[8,4]", False),
    "more outputs": (
        f"{_SCATTER % 'x'}\nq = f32[8,4] negate(x)\nROOT t = (f32[8,4], f32[8,4]) tuple(s, q)",
        "(f32[8,4], f32[8,4])",
        False,
    ),
    "epilogue": (f"{_SCATTER % 'x'}\nROOT e = f32[8,4] exponential(s)", "f32[8,4]", False),
    "sort": ("y = f32[8,4] negate(x)\nROOT s = f32[8,4] sort(y), dimensions={0}, to_apply=less", "f32[8,4]", False),
    "called": ("ROOT c = f32[8,4] call(x, n, u), to_apply=inner", "f32[8,4]", False),
    "elementwise": ("ROOT e = f32[8,4] exponential(x)", "f32[8,4]", True),
}


def _parameters(*names: str) -> str:
    shapes = {"x": "f32[8,4]", "n": "s32[3,1]", "u": "f32[3,4]"}
    return "\n".join(f"{p} = {shapes[p]} parameter({k})" for k, p in enumerate(names))


def _program(name: str) -> str:
    lines, result, _ = BODIES[name]
    parameters = _parameters("x", "n", "u")
    used = [p for p in ("x", "n", "u") if re.search(rf"\b{p}\b", lines)]
    scalars = "a = f32[] parameter(0)\nb = f32[] parameter(1)"
    return f"""HloModule m
add {{\n{scalars}\nROOT r = f32[] add(a, b)\n}}
less {{\n{scalars}\nROOT r = pred[] compare(a, b), direction=LT\n}}
inner {{\n{parameters}\nROOT {_SCATTER % "x"}\n}}
body {{\n{_parameters(*used)}\n{lines}\n}}
ENTRY e {{\n{parameters}\nROOT f = {result} fusion({", ".join(used)}), kind=kLoop, calls=body\n}}
"""


@pytest.mark.parametrize("name", BODIES)
def test_what_no_kernel_does(name: str) -> None:
    fusion = parse(_program(name)).entry.root
    assert (why_no_kernel(fusion.calls) == "") is BODIES[name][2]


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("name", BODIES)
def test_given_fusions_compile(name: str, target: str) -> None:
    text = _program(name)
    random = np.random.default_rng(0)
    inputs = [
        random.standard_normal((8, 4)).astype(np.float32),
        np.array([[5], [2], [5]], np.int32),
        random.standard_normal((3, 4)).astype(np.float32),
    ]
    want = evaluate(parse(text), *inputs)
    got = heron.compile(parse(text), target)(*inputs)
    for g, w in zip(got if isinstance(got, (list, tuple)) else [got], want, strict=True):
        np.testing.assert_allclose(np.asarray(g), w, rtol=1e-5)


PRODUCTS = {
    "dot": ("f32[256,256]", "dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "convolution": ("f32[256,256]", "convolution(a, b), dim_labels=bf_io->bf"),
}


@pytest.mark.parametrize("kind", ["kLoop", "kInput", "kOutput"])
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("nested", [False, True])
def test_products_are_taken_out(name: str, kind: str, nested: bool) -> None:
    """A library does them, also those of a fusion inside another."""
    shape, op = PRODUCTS[name]
    parameters = f"x = {shape} parameter(0)\ny = {shape} parameter(1)"
    inside = f"{parameters}\na = {shape} negate(x)\nb = {shape} abs(y)\nd = {shape} {op}\nROOT r = {shape} add(d, x)"
    call = f"{parameters}\nf = {shape} fusion(x, y), kind={kind}, calls=inside\nROOT r = {shape} tanh(f)"
    around = f"around {{\n{call}\n}}" if nested else ""
    module = parse(f"""HloModule m
inside {{\n{inside}\n}}
{around}
ENTRY e {{\n{parameters}\nROOT f = {shape} fusion(x, y), kind={kind}, calls={"around" if nested else "inside"}\n}}
""")
    random = np.random.default_rng(0)
    inputs = [random.standard_normal((256, 256)).astype(np.float32) for _ in range(2)]
    want = evaluate(module, *inputs)[0]
    assert get("fusion-legalizer").run(alone := module.clone(), PassContext())
    assert [i.opcode for i in alone.entry.instructions].count(name) == 1
    np.testing.assert_allclose(heron.compile(module, "cpu")(*inputs), want, rtol=1e-4, atol=1e-4)
