"""Attention: cuDNN's calls on every target, written out, and the rewriter that makes them."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron import HeronError, Options, targets
from heron.compiling import compile
from heron.evaluator.calls.attention import compute
from heron.hlo.calls import attention
from heron.hlo.calls.attention import AttentionConfig
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext


def shape(t: str, *dims: int) -> str:
    return f"{t}[{','.join(map(str, dims))}]"


def program(
    given: AttentionConfig,
    q: tuple[int, ...],
    kv: tuple[int, ...],
    bias: tuple[int, ...] = (),
    statistics: bool = False,
    dbias: bool = False,
) -> str:
    """A call as JAX makes it, and its arrays as results."""
    order = (0, 1, 2, 3) if given.heads_first else (0, 2, 1, 3)
    out, keys = (shape("bf16", *(x[d] for d in order)) for x in (q, kv))
    rows = shape("f32", q[0], q[order[1]], q[order[2]])
    ins = [shape("bf16", *x) for x in (q, kv, kv)]
    results = [out, keys, keys] if given.backward else [out, rows][: 1 + statistics]
    ins += [rows, ins[0], ins[0]] if given.backward else []
    ins += [shape("bf16", *bias)] if bias else []
    results += [ins[-1]] if dbias else []
    lines = [f"  p{n} = {s} parameter({n})" for n, s in enumerate(ins)]
    names, all_ = ", ".join(f"p{n}" for n in range(len(ins))), ", ".join(results)
    end = f'custom_call_target="{given.target}", backend_config={given}'
    lines.append(f"  c = ({all_}, u8[0]) custom-call({names}), {end}")
    lines += [f"  r{n} = {s} get-tuple-element(c), index={n}" for n, s in enumerate(results)]
    lines.append(f"  ROOT t = ({all_}) tuple({', '.join(f'r{n}' for n in range(len(results)))})")
    return "HloModule m\n\nENTRY main {\n" + "\n".join(lines) + "\n}\n"


CALLS = {
    "plain": program(AttentionConfig(0.5), (2, 4, 16, 8), (2, 4, 16, 8)),
    "training, causal, few keys": program(
        AttentionConfig(0.5, True, False), (2, 16, 4, 8), (2, 16, 2, 8), statistics=True
    ),
    "bias": program(AttentionConfig(0.5, has_bias=True), (2, 4, 16, 8), (2, 4, 24, 8), (1, 4, 16, 24)),
    "derivative": program(AttentionConfig(0.5, True, backward=True), (2, 4, 16, 8), (2, 4, 16, 8)),
    "derivative, bias, few keys": program(
        AttentionConfig(0.5, False, False, True, True), (2, 16, 4, 8), (2, 16, 2, 8), (1, 4, 16, 16), dbias=True
    ),
}


def inputs(module: Module) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    found = [rng.standard_normal(p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    # statistics of about what scores of these sizes have
    return [a + np.float32(6) if a.dtype == np.float32 else a for a in found]


@pytest.mark.parametrize("libraries", ["auto", "none"])
@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("text", CALLS.values(), ids=CALLS)
def test_calls(text: str, target: str, libraries: str) -> None:
    module = parse(text, verify=True)
    arrays = inputs(module)
    executable = compile(module, target, Options(libraries=libraries, triton="off"))
    for found, wanted in zip(executable.run(arrays), heron.evaluate(module, *arrays), strict=True):
        found, wanted = (np.asarray(x, np.float32) for x in (found, wanted))
        np.testing.assert_allclose(found, wanted, rtol=2e-2, atol=2e-2 * np.abs(wanted).max())
    if target != "cpu":
        assert ("cudnn" in executable.trace.thunks) == (libraries == "auto" and "Backward" not in text)


@pytest.mark.parametrize("causal", [False, True])
def test_the_derivative_is_that_of_the_function(causal: bool) -> None:
    rng = np.random.default_rng(1)
    q, k, v, dy = rng.standard_normal((4, 1, 2, 6, 4))
    bias = rng.standard_normal((1, 2, 6, 6))
    forward = AttentionConfig(0.7, causal, has_bias=True)
    shapes = [q.shape, q.shape[:3], (0,)]
    y, statistics = compute(forward, (q, k, v, bias), shapes)
    backward = AttentionConfig(0.7, causal, backward=True, has_bias=True)
    grads = compute(backward, (q, k, v, statistics, dy, y, bias), [q.shape] * 3 + [bias.shape, (0,)])
    place, step = (0, 1, 3, 2), 1e-6
    for x, grad in zip((q, k, v, bias), grads, strict=True):
        kept = x[place]
        values = []
        for by in (step, -step):
            x[place] = kept + by
            values.append((compute(forward, (q, k, v, bias), shapes)[0] * dy).sum())
        x[place] = kept
        assert grad[place] == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4, abs=1e-8)


@pytest.mark.parametrize(
    ("old", "new", "code", "why"),
    [
        ('"dropout_rate":0', '"dropout_rate":0.1', "HLO171", "dropout"),
        ("fmhaSoftmax", "fmhaSoftmaxDropout", "HLO171", "dropout"),
        ("NO_MASK", "PADDING", "HLO171", "mask PADDING"),
        ('"sliding_window_length":0', '"sliding_window_length":4', "HLO171", "sliding window"),
        ("fmhaSoftmax", "fmhaScaleBiasSoftmax", "HLO171", "3 operands"),
        ('["0","1"]', '["1","0"]', "HLO171", "batch dimensions"),
        ('"fmha_scale":0.5', '"fmha_scale":"a"', "HLO170", ""),
    ],
)
def test_bad_calls(old: str, new: str, code: str, why: str) -> None:
    assert old in CALLS["plain"]
    with pytest.raises(HeronError, match=code) as refused:
        compile(parse(CALLS["plain"].replace(old, new)), "sim:sm_90")
    assert why in refused.value.what


# -- the rewriter ------------------------------------------------------------------------------------------------------
HEAD = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

largest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}

ENTRY main {
  q = bf16[2,16,4,8] parameter(0)
  k = bf16[2,16,4,8] parameter(1)
  v = bf16[2,16,4,8] parameter(2)
  bias = f32[4,16,16] parameter(3)
  d = f32[2,4,16,16] dot(q, k), lhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={3}
  half = f32[] constant(0.5)
  halves = f32[2,4,16,16] broadcast(half), dimensions={}
  low = f32[] constant(-inf)
  lows = f32[2,4,16,16] broadcast(low), dimensions={}
  scaled = f32[2,4,16,16] multiply(d, halves)
"""
BIAS = """  wide = f32[2,4,16,16] broadcast(bias), dimensions={1,2,3}
  biased = f32[2,4,16,16] add(SCORES, wide)
"""
MASK = """  row = s32[16,16] iota(), iota_dimension=0
  key = s32[16,16] iota(), iota_dimension=1
  sees = pred[16,16] compare(row, key), direction=GE
  seen = pred[2,4,16,16] broadcast(sees), dimensions={2,3}
  masked = f32[2,4,16,16] select(seen, SCORES, lows)
"""
SEEN = """  allowed = pred[2,SIZES] parameter(4)
  low_ = f32[] constant(-2.38197633e+38)
  lowest = f32[2,4,16,16] broadcast(low_), dimensions={}
  wide_ = pred[2,4,16,16] broadcast(allowed), dimensions={DIMS}
  hidden = f32[2,4,16,16] select(wide_, SCORES, lowest)
"""
OF_PAIRS = SEEN.replace("SIZES", "16,16").replace("DIMS", "0,2,3")
OF_KEYS = SEEN.replace("SIZES", "16").replace("DIMS", "0,3")
TAIL = """  m = f32[2,4,16] reduce(SCORES, low), dimensions={3}, to_apply=largest
  ms = f32[2,4,16,16] broadcast(m), dimensions={0,1,2}
  c = f32[2,4,16,16] subtract(SCORES, ms)
  e = f32[2,4,16,16] exponential(c)
  zero = f32[] constant(0)
  t = f32[2,4,16] reduce(e, zero), dimensions={3}, to_apply=add
  ts = f32[2,4,16,16] broadcast(t), dimensions={0,1,2}
  p = f32[2,4,16,16] divide(e, ts)
  w = bf16[2,4,16,16] convert(p)
"""
ROOT = "  ROOT y = bf16[2,4,16,8] dot(w, v), lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={1}\n}\n"
TURNED = (
    ROOT.replace("[2,4,16,8] dot(w, v)", "[2,4,8,16] dot(v, w)")
    .replace("lhs_batch_dims={0,1}, lhs_contracting_dims={3}", "lhs_batch_dims={0,2}, lhs_contracting_dims={1}")
    .replace("rhs_batch_dims={0,2}, rhs_contracting_dims={1}", "rhs_batch_dims={0,1}, rhs_contracting_dims={3}")
)


def rewritten(text: str, libraries: str = "auto") -> tuple[Module, PassContext]:
    module = parse(text, verify=True)
    before, ctx = ValueCheck(module), PassContext(Options(libraries=libraries), target=targets.get("sm_90"))
    registry.get("dce").run(module, ctx)
    registry.get("cudnn-fused-mha-rewriter").run(module, ctx)
    verify(module)
    before.after("cudnn-fused-mha-rewriter", module)
    registry.get("dce").run(module, ctx)
    return module, ctx


@pytest.mark.parametrize(
    ("middle", "scores", "wanted"),
    [
        ("", "d", AttentionConfig(1.0)),
        ("", "scaled", AttentionConfig(0.5)),
        (BIAS.replace("SCORES", "scaled"), "biased", AttentionConfig(0.5, has_bias=True)),
        (MASK.replace("SCORES", "scaled"), "masked", AttentionConfig(0.5, True)),
        (
            BIAS.replace("SCORES", "scaled") + MASK.replace("SCORES", "biased"),
            "masked",
            AttentionConfig(0.5, True, has_bias=True),
        ),
        (OF_PAIRS.replace("SCORES", "scaled"), "hidden", AttentionConfig(0.5, has_bias=True)),
        (OF_KEYS.replace("SCORES", "d"), "hidden", AttentionConfig(1.0, has_bias=True)),
        (
            BIAS.replace("SCORES", "scaled") + OF_KEYS.replace("SCORES", "biased"),
            "hidden",
            AttentionConfig(0.5, has_bias=True),
        ),
    ],
    ids=["plain", "scaled", "bias", "causal", "all", "mask", "mask of keys", "mask and bias"],
)
@pytest.mark.parametrize("root", [ROOT, TURNED], ids=["rows", "columns"])
def test_forms(root: str, middle: str, scores: str, wanted: AttentionConfig) -> None:
    module, _ = rewritten(HEAD + middle + TAIL.replace("SCORES", scores) + root)
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert (attention.read(call), call.custom_call_target) == (wanted, wanted.target)
    assert not {"dot", "reduce", "exponential"}.intersection(i.opcode for i in module.entry.instructions)
    assert all(o.shape.dims[:3] == (2, 4, 16) for o in call.operands[:3])
    if wanted.has_bias:
        sizes = (2 if "allowed" in middle else 1, 4 if "bias" in middle else 1, 16, 16)
        assert call.operands[3].shape.dims == sizes


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("ROOT y", "y", "read by others"),
        ("w = bf16[2,4,16,16] convert(p)", "o = f32[2,4,16,16] multiply(p, halves)\n  w = bf16[2,4,16,16] convert(o)", "dropout"),
        ("8]", "12]", "heads of 12"),
        ("bf16", "f32", "one of bf16"),
    ],
    ids=["derivative", "dropout", "heads", "types"],
)  # fmt: skip
def test_refusals_are_decisions(old: str, new: str, why: str) -> None:
    text = HEAD + TAIL.replace("SCORES", "scaled") + ROOT
    assert old in text
    text = text.replace(old, new)
    if new == "y":
        text = text.removesuffix("}\n") + "  ROOT r = (bf16[2,4,16,8], f32[2,4,16,16]) tuple(y, p)\n}\n"
    module, ctx = rewritten(text)
    assert not [i for i in module.instructions() if i.opcode == "custom-call"]
    assert [d.ok for d in ctx.trace.decisions] == [False] and why in ctx.trace.decisions[0].reason


def test_masks_of_f16_need_numbers_it_has() -> None:
    text = HEAD + OF_PAIRS.replace("SCORES", "d") + TAIL.replace("SCORES", "hidden") + ROOT
    _, ctx = rewritten(text.replace("bf16", "f16"))
    assert "f16 has no number as low" in ctx.trace.decisions[0].reason
    _, ctx = rewritten(text.replace("bf16", "f16").replace("-2.38197633e+38", "-inf"))
    assert ctx.trace.decisions[0].ok


def test_without_the_library_it_stays() -> None:
    module, ctx = rewritten(HEAD + TAIL.replace("SCORES", "d") + ROOT, "none")
    assert "exponential" in [i.opcode for i in module.entry.instructions]
    assert "leaves cudnn out" in ctx.trace.decisions[0].reason
