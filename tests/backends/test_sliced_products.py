"""Products on the CPU read slices of their operands where they lie: values, memory, and what must be copied still."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import heron
from heron import targets
from heron.analysis.fusion.sliced_product import KIND
from heron.codegen.native import float_gemm
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.types import BF16

RNG = np.random.default_rng(3)
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "s32": np.int32, "c64": np.complex64}


def check(text: str, inputs: list[Any], sliced: int) -> Any:
    """Values as by the evaluator, and the number of products that read slices."""
    module = heron.parse(text)
    program = compile(heron.parse(text), targets.get("cpu"))
    wanted, found = evaluate(module, *map(np.asarray, inputs)), program.run(inputs)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(
            np.asarray(a).astype(np.complex128), np.asarray(b).astype(np.complex128), rtol=1e-4, atol=1e-4
        )
    assert program.stage("scheduled").count(KIND) == sliced
    return program


def part(k: int, n: int, t: str, sizes: str, starts: str) -> str:
    return f"""
  s = {t}[{sizes}] dynamic-slice(w, {starts}), dynamic_slice_sizes={{{sizes}}}
  m = {t}[{k},{n}] reshape(s)
  ROOT d = {t}[9,{n}] dot(x, m), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


@pytest.mark.parametrize("start", [-7, 0, 2, 4, 99])
@pytest.mark.parametrize("index", ["s8", "u8", "s16", "s32", "u32", "s64", "u64"])
def test_starts_of_every_type_stay_in_range(index: str, start: int) -> None:
    if index[0] == "u" and start < 0:
        start = {"u8": 250, "u32": (1 << 32) - 1, "u64": (1 << 64) - 1}[index]
    text = f"""HloModule m
ENTRY e {{
  x = f32[9,30] parameter(0)
  w = f32[5,2,30,21] parameter(1)
  n = {index}[] parameter(2)
  one = {index}[] constant(1)
  zero = {index}[] constant(0)""" + part(30, 21, "f32", "1,1,30,21", "n, one, zero, zero")
    kind = {"s": "int", "u": "uint"}[index[0]] + index[1:]
    x, w = (RNG.normal(size=s).astype(np.float32) for s in ((9, 30), (5, 2, 30, 21)))
    program = check(text, [x, w, np.array(start, kind)], sliced=1)
    assert program.memory["temp"] == 0


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize(("k", "n"), [(40, 24), (33, 7), (130, 65)])
def test_types_and_sizes(t: str, k: int, n: int) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = {t}[9,{k}] parameter(0)
  w = {t}[4,{k},{n}] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)""" + part(k, n, t, f"1,{k},{n}", "i, zero, zero")
    x, w = (RNG.integers(-2, 3, size=s).astype(TYPES[t]) for s in ((9, k), (4, k, n)))
    is_kernel = t == "s32"  # which takes no address that is no multiple of 16
    is_converted = t == "bf16" and float_gemm.form(BF16) is None  # where the machine multiplies no bf16
    check(text, [x, w, np.int32(2)], sliced=0 if is_converted or is_kernel and k * n % 4 else 1)


def test_known_slices_of_both_operands() -> None:
    text = """HloModule m
ENTRY e {
  w = f32[60,40] parameter(0)
  a = f32[7,40] slice(w), slice={[3:10], [0:40]}
  b = f32[40,40] slice(w), slice={[17:57], [0:40]}
  ROOT d = f32[7,40] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    check(text, [RNG.normal(size=(60, 40)).astype(np.float32)], sliced=1)


@pytest.mark.parametrize("cut", ["{[0:40], [0:20]}", "{[0:80:2], [0:20]}"])
def test_slices_that_are_no_block_are_copied(cut: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[70,40] parameter(0)
  w = f32[80,21] parameter(1)
  b = f32[40,20] slice(w), slice={cut}
  ROOT d = f32[70,20] dot(x, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""
    check(text, [RNG.normal(size=s).astype(np.float32) for s in ((70, 40), (80, 21))], sliced=0)


LOOP = """HloModule m
condition {
  s = (s32[], f32[6,40,40], f32[50,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(11)
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[6,40,40], f32[50,40]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[6,40,40] get-tuple-element(s), index=1
  x = f32[50,40] get-tuple-element(s), index=2
  one = s32[] constant(1)
  two = s32[] constant(2)
  zero = s32[] constant(0)
  next = s32[] add(i, one)
  at = s32[] divide(i, two)
  p = f32[1,40,40] dynamic-slice(w, at, zero, zero), dynamic_slice_sizes={1,40,40}
  m = f32[40,40] reshape(p)
  y = f32[50,40] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[50,40] tanh(y)
  UPDATE
  ROOT t = (s32[], f32[6,40,40], f32[50,40]) tuple(next, STATE, z)
}
ENTRY e {
  zero = s32[] constant(0)
  w = f32[6,40,40] parameter(0)
  x = f32[50,40] parameter(1)
  t = (s32[], f32[6,40,40], f32[50,40]) tuple(zero, w, x)
  ROOT r = (s32[], f32[6,40,40], f32[50,40]) while(t), condition=condition, body=body
}"""


@pytest.mark.parametrize("updates", [False, True])
def test_layers_of_a_loop(updates: bool) -> None:
    """Weights that stay are read where they lie. Those that a step overwrites before the product are copied."""
    update = """half = f32[] constant(0.5)
  halves = f32[1,40,40] broadcast(half), dimensions={}
  q = f32[1,40,40] multiply(p, halves)
  u = f32[6,40,40] dynamic-update-slice(w, q, at, zero, zero)"""
    text = LOOP.replace("UPDATE", update if updates else "").replace("STATE", "u" if updates else "w")
    w = (RNG.normal(size=(6, 40, 40)) / 6).astype(np.float32)
    check(text, [w, RNG.normal(size=(50, 40)).astype(np.float32)], sliced=0 if updates else 1)


def test_filters_of_convolutions() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2,9,9,5] parameter(0)
  w = f32[4,3,3,5,16] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  s = f32[1,3,3,5,16] dynamic-slice(w, i, zero, zero, zero, zero), dynamic_slice_sizes={1,3,3,5,16}
  m = f32[3,3,5,16] reshape(s)
  ROOT c = f32[2,9,9,16] convolution(x, m), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
}"""
    x, w = (RNG.normal(size=s).astype(np.float32) for s in ((2, 9, 9, 5), (4, 3, 3, 5, 16)))
    assert check(text, [x, w, np.int32(3)], sliced=1).memory["temp"] == 0


def test_a_vector_and_a_slice_of_large_matrices() -> None:
    """The product is a kernel, which takes the slice's address."""
    k = 1100
    text = f"""HloModule m
ENTRY e {{
  x = f32[{k}] parameter(0)
  w = f32[3,{k},{k}] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  s = f32[1,{k},{k}] dynamic-slice(w, i, zero, zero), dynamic_slice_sizes={{1,{k},{k}}}
  m = f32[{k},{k}] reshape(s)
  ROOT d = f32[{k}] dot(x, m), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
}}"""
    x, w = (RNG.normal(size=s).astype(np.float32) for s in ((k,), (3, k, k)))
    program = check(text, [x, w, np.int32(1)], sliced=1)
    assert program.memory["temp"] < k * k
