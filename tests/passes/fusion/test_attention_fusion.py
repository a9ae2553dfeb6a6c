"""Attention as one kernel: values on the simulated GPU, what is refused and why, the passes behind it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron import targets
from heron.analysis.blocks.config import BlockConfig, config_of
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.shape import tuple_
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.measured import alone
from heron.passes.framework.registry import get
from heron.trace import Trace
from tests.codegen.triton.kernels import attention, expected, program, run, run_computation
from tests.support import program as workload

EPS = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def gradient(queries: int, keys: int, t: str = "bf16", mask: str = "", batch: int = 2, width: int = 16) -> str:
    """The same with the gradients of queries, keys and values, given the result's."""
    s, b = f"f32[{batch},{queries},{keys}]", f"{t}[{batch},{queries},{keys}]"
    dims, wanted = "lhs_batch_dims={0}, rhs_batch_dims={0}", "2,2" if mask == "causal" else ""
    lines = attention(queries, keys, t, mask, batch, width).replace("ROOT o", "o")
    number = 3 + ("parameter(3)" in lines)
    off = f"dx = {s} select(gb, dy, zb)" if wanted else f"dx = {s} add(dy, zb)"
    return f"""{lines}
      g = {t}[{batch},{queries},{width}] parameter({number})
      dp = f32[{batch},{queries},{keys}] dot(g, v), {dims}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
      w = {s} multiply(dp, p)
      r = f32[{batch},{queries}] reduce(w, zero), dimensions={{2}}, to_apply=add
      rb = {s} broadcast(r), dimensions={{0,1}}
      dd = {s} subtract(dp, rb)
      dy = {s} multiply(dd, p)
      zb = {s} broadcast(zero), dimensions={{}}
      {off}
      dz = {s} multiply(dx, cb)
      ds = {b} convert(dz)
      dq = {t}[{batch},{queries},{width}] dot(ds, k), {dims}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
      dk = {t}[{batch},{keys},{width}] dot(ds, q), {dims}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
      dv = {t}[{batch},{width},{keys}] dot(g, pb), {dims}, lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}
      ROOT all = (f32[{batch},{queries},{width}], {t}[{batch},{queries},{width}], {t}[{batch},{keys},{width}],
        {t}[{batch},{width},{keys}]) tuple(o, dq, dk, dv)
    """


def inputs_of(text: str, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [p.shape for p in parse(text).entry.parameters]
    made = [rng.standard_normal(s.dims).astype(s.element_type.dtype) for s in shapes]
    if "bias = " in text:  # some keys are nobody's; the first ones in some rows, so that a pass begins with none
        made[3] = np.where(rng.random(made[3].shape) < 0.4, -np.inf, made[3]).astype(np.float32)
        made[3][..., -1] = 0
    return made


@settings(max_examples=20, deadline=None)
@given(
    queries=st.integers(2, 40), keys=st.integers(17, 90), t=st.sampled_from(["f32", "bf16", "f16"]),
    mask=st.sampled_from(["", "causal", "added", "by key"]), online=st.booleans(), row=st.sampled_from([0, 16, 32]),
    rows=st.sampled_from([16, 32]), parts=st.booleans(), seed=st.integers(0, 9),
)  # fmt: skip
def test_any_attention(
    queries: int, keys: int, t: str, mask: str, online: bool, row: int, rows: int, parts: bool, seed: int
) -> None:
    """A probability is rounded once; its sum and its product's differ by a rounding for each key at most."""
    text = program(attention(queries, keys, t, mask))
    config = BlockConfig((1, rows, 16), 32, row=row, online=online, precision="tf32x3" if parts else "ieee")
    inputs = inputs_of(text, seed)
    (got,), (wanted,) = run(text, config, inputs), expected(text, inputs)
    largest = float(np.max(np.abs(inputs[2].astype(np.float32))))
    score = (
        float(np.max(np.abs(inputs[0].astype(np.float32)))) * 16 * float(np.max(np.abs(inputs[1].astype(np.float32))))
    )
    scores = (16 if parts and t == "f32" else 2) * EPS["f32"] * 16 * score  # of an exponent, so of a probability
    atol = largest * (2 * EPS[t] + 4 * keys * EPS["f32"] + scores + (16 * EPS["f32"] if parts else 0))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=atol)


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize("row", [0, 16, 32])
@pytest.mark.parametrize("mask", ["", "added"])
def test_what_rows_are_reduced_to(mask: str, row: int, online: bool) -> None:
    """The largest score and the sum of a row are results, too."""
    text = program(
        attention(24, 40, "f32", mask).replace("ROOT o", "o")
        + "\nROOT r = (f32[2,24,16], f32[2,24], f32[2,24]) tuple(o, m, t)"
    )
    inputs = inputs_of(text, 3)
    got = run(text, BlockConfig((1, 16, 16), 32, row=row, online=online), inputs)
    for a, b in zip(got, expected(text, inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@settings(max_examples=12, deadline=None)
@given(
    queries=st.integers(2, 40), keys=st.integers(17, 70), t=st.sampled_from(["f32", "bf16", "f16"]),
    mask=st.sampled_from(["", "causal", "added", "by key"]), row=st.sampled_from([0, 16, 32]),
    rows=st.sampled_from([16, 32]), seed=st.integers(0, 9),
)  # fmt: skip
def test_any_gradient(queries: int, keys: int, t: str, mask: str, row: int, rows: int, seed: int) -> None:
    """Forward and backward are a kernel for each product; each of them computes what the evaluator says of it."""
    module = parse(program(gradient(queries, keys, t, mask)))
    given = inputs_of(str(module), seed)
    wanted = evaluate(module, *given)
    ctx = PassContext(Options(triton="on"), targets.get("sm_90"))
    ctx.run_pass(get("attention-fusion", weigh=False), module)
    fusions = [i for i in module.entry.instructions if i.opcode == "fusion"]
    assert len(fusions) == 4 and not any(i.opcode in ("dot", "reduce") for i in module.entry.instructions)
    for a, b in zip(evaluate(module, *given), wanted, strict=True):
        np.testing.assert_array_equal(a, b)  # the same ops, only grouped
    for n, result in enumerate(list(module.entry.root.operands)):
        fusion = result.operands[0] if result.opcode == "get-tuple-element" else result
        module.entry.root = module.entry.add("tuple", list(fusion.operands), tuple_([o.shape for o in fusion.operands]))
        inputs = list(evaluate(module, *given))
        found = evaluate(alone(fusion), *inputs)
        config = BlockConfig((1, rows, 16), 32, row=row)
        got = run_computation(fusion.calls, config, inputs)
        for a, b in zip(got, found if isinstance(found, (list, tuple)) else [found], strict=True):
            atol = _largest_error(given, n if a.ndim == 3 else None, t)
            np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=0, atol=atol)


def _largest_error(inputs: list[np.ndarray], result: int | None, t: str) -> float:
    """How far a result, or a row's number, may be off: the largest it may be times the roundings on its way."""
    q, k, v, g = (float(np.max(np.abs(inputs[n].astype(np.float64)))) for n in (0, 1, 2, -1))
    queries, keys = inputs[0].shape[1], inputs[1].shape[1]
    score, weight = 16 * q * k, 16 * g * v
    largest = {0: v, 1: weight * k, 2: queries * weight * q, 3: queries * g, None: max(score, weight, keys)}[result]
    return largest * (4 * EPS[t] + 8 * (keys + queries + 16 * score) * EPS["f32"])


def test_transposed_operands_are_read_through() -> None:
    """Heads behind positions, as JAX has them: no kernel moves them first, in either direction."""
    lines = gradient(24, 40, "bf16", "causal")
    for n, (name, rows) in enumerate((("q", 24), ("k", 40), ("v", 40))):
        given = f"{name} = bf16[2,{rows},16] parameter({n})"
        assert given in lines
        there = f"{name}0 = bf16[{rows},2,16] parameter({n})\n{name} = bf16[2,{rows},16] transpose({name}0), dimensions={{1,0,2}}"
        lines = lines.replace(given, there)
    module = parse(program(lines))
    given = inputs_of(str(module), 4)
    wanted = evaluate(module, *given)
    ctx = PassContext(Options(triton="on"), targets.get("sm_90"))
    ctx.run_pass(get("attention-fusion", weigh=False), module)
    assert not any(i.opcode == "transpose" for i in module.entry.instructions)
    for a, b in zip(evaluate(module, *given), wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    fusion = next(i for i in module.entry.instructions if i.opcode == "fusion")
    inputs = [given[module.entry.parameters.index(o)] for o in fusion.operands]
    found = evaluate(alone(fusion), *inputs)
    for a, b in zip(run_computation(fusion.calls, BlockConfig((1, 16, 16), 32, row=16), inputs), found, strict=True):
        atol = _largest_error(
            [np.moveaxis(x, 1, 0) if n < 3 else x for n, x in enumerate(given)], 0 if a.ndim == 3 else None, "bf16"
        )
        np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=0, atol=atol)


def test_rows_of_nothing() -> None:
    """A row without keys is no number, however it is gone through."""
    text = program(attention(16, 64, "f32", "added"))
    inputs = inputs_of(text, 0)
    inputs[3][3] = -np.inf
    (wanted,) = expected(text, inputs)
    assert np.isnan(wanted[:, 3]).all() and not np.isnan(wanted[:, :3]).any()
    for row, online in ((0, False), (16, False), (16, True)):
        (got,) = run(text, BlockConfig((1, 16, 16), 32, row=row, online=online), inputs)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))


@pytest.mark.parametrize("math", ["ieee", "reassociate", "fast"])
@pytest.mark.parametrize("name", ["attention_f32", "flax_transformer", "transformer_block"])
def test_workloads(name: str, math: str) -> None:
    """Programs whose attention becomes one kernel, from end to end."""
    module = parse(workload(name).read_text())
    rng = np.random.default_rng(1)
    inputs = [
        (rng.standard_normal(p.shape.dims) / 2 if p.shape.element_type.is_float else rng.integers(0, 5, p.shape.dims))
        .astype(p.shape.element_type.dtype)
        for p in module.entry.parameters
    ]  # fmt: skip
    trace = Trace()
    executable = compile(module, targets.get("sim:sm_90"), Options(math=math), trace)
    assert any(d.ok and d.rule == "attention-fusion" for d in trace.decisions)
    got = executable(*inputs)
    for a, b in zip(got if isinstance(got, tuple) else (got,), evaluate(module, *inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-4 * float(np.abs(b).max()))


def _fused(body: str, math: str = "ieee", **fields: object) -> tuple[list[BlockConfig], list[str]]:
    module = parse(program(body))
    ctx = PassContext(Options(math=math, triton="on"), targets.get("sm_90"))
    ctx.run_pass(get("attention-fusion", **fields), module)
    refused = [d.reason for d in ctx.trace.decisions if not d.ok]
    return [c for i in module.entry.instructions if (c := config_of(i)) is not None], refused


def test_one_loop_only_where_math_allows_it() -> None:
    body = attention(2048, 2048, batch=16, width=64)
    (exact,), _ = _fused(body)
    (scaled,), _ = _fused(body, "reassociate")
    assert exact.row and not exact.online
    assert scaled.online and scaled.row


def test_products_of_f32_are_weighed() -> None:
    """Plain arithmetic is not enough to win by; what matrix units do in parts is."""
    body = attention(512, 512, "f32", batch=16, width=64)
    configs, (reason,) = _fused(body)
    assert not configs and reason.startswith("by model it is slower")
    (config,), _ = _fused(body, "fast")
    assert config.precision == "tf32x3"
    (config,), _ = _fused(body, weigh=False)
    assert config.precision == "ieee"


def test_what_others_read_stays() -> None:
    body = attention(64, 64).replace("ROOT o =", "o =")
    configs, (reason,) = _fused(body + "ROOT r = (f32[2,64,16], f32[2,64,64]) tuple(o, e)\n", weigh=False)
    assert not configs and reason == "'e' is read elsewhere, too"
