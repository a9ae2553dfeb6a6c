"""The backends' own parts: product shapes, thunk plans, shared kernels, executables and their refusals."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.backends.compiler import DEVICE_STAGES, STAGES
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.calls.gemm_shape import gemm_shape

ADD = """HloModule add

ENTRY main {
  x = f32[6,7]{1,0} parameter(0)
  y = f32[6,7]{1,0} parameter(1)
  ROOT r = f32[6,7]{1,0} add(x, y)
}
"""

LOOP = """HloModule loop

body {
  state = (s32[], f32[5]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[5] get-tuple-element(state), index=1
  other = f32[5] negate(x)
  ROOT r = (s32[], f32[5]) tuple(next, other)
}

condition {
  state = (s32[], f32[5]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  end = s32[] constant(1001)
  ROOT r = pred[] compare(i, end), direction=LT
}

ENTRY main {
  x = f32[5] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], f32[5]) tuple(zero, x)
  ROOT w = (s32[], f32[5]) while(start), condition=condition, body=body
}
"""

TARGETS = ("cpu", "sim:sm_90")


def dot_text(lhs: str, rhs: str, out: str, dims: str) -> str:
    return f"""HloModule dot

ENTRY main {{
  x = {lhs} parameter(0)
  y = {rhs} parameter(1)
  ROOT r = {out} dot(x, y), {dims}
}}
"""


@pytest.mark.parametrize(
    ("lhs", "rhs", "out", "dims", "flags"),
    [
        ("f32[3,4]", "f32[4,5]", "f32[3,5]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}", (False, False)),
        ("f32[4,3]", "f32[4,5]", "f32[3,5]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}", (True, False)),
        ("f32[3,4]", "f32[5,4]", "f32[3,5]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}", (False, True)),
        (
            "f32[2,4,3]",
            "f32[2,5,4]",
            "f32[2,3,5]",
            "lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={0}, rhs_contracting_dims={2}",
            (True, True),
        ),
    ],
)
@pytest.mark.parametrize("target", TARGETS)
def test_products(lhs: str, rhs: str, out: str, dims: str, flags: tuple[bool, bool], target: str) -> None:
    module = heron.parse(dot_text(lhs, rhs, out, dims))
    g = gemm_shape(module.entry.root)
    assert (g.m, g.n, g.k, g.lhs_transposed, g.rhs_transposed) == (3, 5, 4, *flags)
    generator = np.random.default_rng(1)
    x, y = (generator.standard_normal(p.shape.dims, np.float32) for p in module.entry.parameters)
    np.testing.assert_allclose(compile(module, target)(x, y), heron.evaluate(module, x, y)[0], rtol=1e-5)


@pytest.mark.parametrize("types", [("bf16", "bf16"), ("f64", "f64"), ("s8", "s32"), ("s32", "s32"), ("f16", "f32")])
@pytest.mark.parametrize("target", TARGETS)
def test_product_types(types: tuple[str, str], target: str) -> None:
    given_type, result = types
    dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    module = heron.parse(dot_text(f"{given_type}[3,40]", f"{given_type}[40,5]", f"{result}[3,5]", dims))
    dtype = module.entry.parameters[0].shape.element_type.dtype
    generator = np.random.default_rng(1)
    x, y = (generator.integers(-9, 9, p.shape.dims).astype(dtype) for p in module.entry.parameters)
    got, wanted = compile(module, target)(x, y), heron.evaluate(module, x, y)[0]
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))  # small integers: exact


@settings(max_examples=25)
@given(st.data())
def test_random_products(data: st.DataObject) -> None:
    """Any dot, with batch, free and contracted dimensions anywhere, is what the evaluator says."""
    sizes = st.integers(1, 4)
    batch, free_l, free_r, inner = (data.draw(st.lists(sizes, max_size=2)) for _ in range(4))
    kinds = [*(("b", n) for n in range(len(batch))), *(("k", n) for n in range(len(inner)))]
    size = {("b", n): s for n, s in enumerate(batch)} | {("k", n): s for n, s in enumerate(inner)}
    size |= {("l", n): s for n, s in enumerate(free_l)} | {("r", n): s for n, s in enumerate(free_r)}
    lhs = data.draw(st.permutations([*kinds, *(("l", n) for n in range(len(free_l)))]))
    rhs = data.draw(st.permutations([*kinds, *(("r", n) for n in range(len(free_r)))]))
    out = [*(k for k in kinds if k[0] == "b"), *(k for k in lhs if k[0] == "l"), *(k for k in rhs if k[0] == "r")]

    def shape(order: list[tuple[str, int]]) -> str:
        return f"f32[{','.join(str(size[k]) for k in order)}]"

    def places(order: list[tuple[str, int]], kind: str) -> str:
        return "{" + ",".join(str(order.index(k)) for k in kinds if k[0] == kind) + "}"

    dims = (
        f"lhs_batch_dims={places(lhs, 'b')}, lhs_contracting_dims={places(lhs, 'k')}, "
        f"rhs_batch_dims={places(rhs, 'b')}, rhs_contracting_dims={places(rhs, 'k')}"
    )
    module = heron.parse(dot_text(shape(lhs), shape(rhs), shape(out), dims))
    generator = np.random.default_rng(1)
    x, y = (generator.standard_normal(p.shape.dims).astype(np.float32) for p in module.entry.parameters)
    np.testing.assert_allclose(compile(module)(x, y), heron.evaluate(module, x, y)[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_loop_state_lives_in_place(target: str) -> None:
    exe = compile(heron.parse(LOOP), target)
    i, x = exe(np.arange(5, dtype=np.float32))
    assert i == 1001  # too many rounds to be unrolled
    np.testing.assert_array_equal(x, -np.arange(5))
    before, _, loop = exe.stage("thunks").partition("while")
    starts = before.count("copy #"), before.count("kernel ")
    # the initial values into the state: on a GPU at once, on a CPU by way of the round that is left over from eights
    assert starts == ((1, 1) if target == "cpu" else (0, 1))
    assert "copy #" not in loop


def test_inputs_are_not_changed() -> None:
    x = np.arange(5, dtype=np.float32)
    compile(heron.parse(LOOP))(x)
    np.testing.assert_array_equal(x, np.arange(5))


def test_stages_have_text() -> None:
    exe = compile(heron.parse(ADD))
    for stage in STAGES:
        if stage not in ("graph", "ptx", "sass", *DEVICE_STAGES):
            assert exe.stage(stage).strip(), stage
    heron.parse(exe.stage("scheduled"))
    for stage in ("graph", "ptx", "sass"):
        with pytest.raises(HeronError, match="TGT003"):
            exe.stage(stage)
    with pytest.raises(HeronError, match="TGT002"):
        exe.stage("nonsense")


def test_identical_fusions_share_a_kernel() -> None:
    text = """HloModule twice

ENTRY main {
  x = f32[8,8] parameter(0)
  y = f32[8,8] parameter(1)
  a = f32[8,8] tanh(x)
  b = f32[8,8] tanh(y)
  d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[8,8], f32[8,8], f32[8,8]) tuple(d, a, b)
}
"""
    exe = compile(heron.parse(text))
    assert sum(k.uses for k in exe.kernels) > len(exe.kernels)


@pytest.mark.parametrize(
    ("arrays", "code"),
    [
        ((np.zeros((6, 7), np.float32),), "RUN001"),
        ((np.zeros((6, 7), np.float32), np.zeros((6, 7))), "RUN002"),
        ((np.zeros((6, 7), np.float32), np.zeros((7, 6), np.float32)), "RUN003"),
    ],
)
def test_wrong_arguments(arrays: tuple[np.ndarray, ...], code: str) -> None:
    with pytest.raises(HeronError, match=code):
        compile(heron.parse(ADD))(*arrays)


def test_strided_arguments() -> None:
    x = np.arange(84, dtype=np.float32).reshape(7, 12)[:, ::2].T
    np.testing.assert_array_equal(compile(heron.parse(ADD))(x, x), x + x)


def test_compiled_only_targets_do_not_run() -> None:
    exe = compile(heron.parse(ADD), "sm_90")
    assert ".target sm_90" in exe.stage("ptx")
    with pytest.raises(HeronError, match="RUN030"):
        exe(np.zeros((6, 7), np.float32), np.zeros((6, 7), np.float32))


def test_threads_do_not_share_scratch() -> None:
    text = """HloModule chain

ENTRY main {
  x = f32[64,64] parameter(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[64,64] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    exe = compile(heron.parse(text))
    generator = np.random.default_rng(1)
    inputs = [generator.standard_normal((64, 64), np.float32) for _ in range(4)]
    alone = [exe(x) for x in inputs]
    together: list[np.ndarray | None] = [None] * 4

    def work(n: int) -> None:
        for _ in range(20):
            together[n] = exe(inputs[n])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


TOKENS = """HloModule tokens

ENTRY main {
  t = token[] parameter(0)
  x = f32[3] parameter(1)
  y = f32[3] add-dependency(x, t)
  z = f32[3] negate(y)
  u = token[] after-all(t)
  inner = (token[], f32[3]) tuple(u, z)
  ROOT all = ((token[], f32[3]), token[]) tuple(inner, t)
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_tokens_are_no_arrays(target: str) -> None:
    x = np.arange(3, dtype=np.float32)
    (token, y), other = compile(heron.parse(TOKENS), target)(x)
    assert token is None and other is None
    np.testing.assert_array_equal(y, -x)
