"""Block fusions as XLA:GPU prints them: whatever tiles they state, and whoever is to compute them, they give the values
the evaluator gives, on the CPU and on the simulated GPU; or a HeronError says what is wrong."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron import targets
from heron.codegen.emit import emit_fusion
from heron.evaluator import evaluate
from heron.hlo.text import parse

ADD = "add {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
FIRST = (
    "first {\n a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n"
    " g = pred[] compare(a, b), direction=GE\n m = f32[] select(g, a, b)\n n = s32[] select(g, i, j)\n"
    " ROOT t = (f32[], s32[]) tuple(m, n)\n}\n"
)
#: parameters' shapes, lines of the body, the result's shape
BODIES = {
    "elementwise": (("f32[8,24]",), "ROOT r = f32[8,24] negate(p0)", "f32[8,24]"),
    "softmax": (
        ("f32[8,24]",),
        "z = f32[] constant(0)\ne = f32[8,24] exponential(p0)\ns = f32[8] reduce(e, z), dimensions={1}, to_apply=add\n"
        "b = f32[8,24] broadcast(s), dimensions={0}\nROOT d = f32[8,24] divide(e, b)",
        "f32[8,24]",
    ),
    "scalar and array": (
        ("f32[16]",),
        "z = f32[] constant(0)\ns = f32[] reduce(p0, z), dimensions={0}, to_apply=add\na = f32[16] abs(p0)\n"
        "ROOT t = (f32[], f32[16]) tuple(s, a)",
        "(f32[], f32[16])",
    ),
    "other ranks": (
        ("f32[4,8]",),
        "z = f32[] constant(0)\ns = f32[4] reduce(p0, z), dimensions={1}, to_apply=add\nf = f32[32] bitcast(p0)\n"
        "ROOT t = (f32[4], f32[32]) tuple(s, f)",
        "(f32[4], f32[32])",
    ),
    "pair of reductions": (
        ("f32[4,8]",),
        "i = s32[4,8] iota(), iota_dimension=1\nz = f32[] constant(-inf)\nn = s32[] constant(0)\n"
        "ROOT r = (f32[4], s32[4]) reduce(p0, i, z, n), dimensions={1}, to_apply=first",
        "(f32[4], s32[4])",
    ),
    "dynamic slice": (
        ("f32[16,8]", "s32[]"),
        "o = s32[] constant(0)\nROOT d = f32[4,8] dynamic-slice(p0, p1, o), dynamic_slice_sizes={4,8}",
        "f32[4,8]",
    ),
    "pad": (("f32[6]",), "z = f32[] constant(1)\nROOT d = f32[9] pad(p0, z), padding=1_2", "f32[9]"),
    "product": (
        ("bf16[32,48]", "f32[48,64]"),
        "c = bf16[48,64] convert(p1)\nd = f32[32,64] dot(p0, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "ROOT n = f32[32,64] negate(d)",
        "f32[32,64]",
    ),
    "product of doubles": (
        ("f64[16,32]", "f64[32,16]"),
        "ROOT d = f64[16,16] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f64[16,16]",
    ),
    "vectors": (
        ("f32[24]", "f32[24]"),
        "ROOT d = f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "f32[]",
    ),
    "outer product": (("f32[8]", "f32[4]"), "ROOT d = f32[8,4] dot(p0, p1)", "f32[8,4]"),
    "fusions inside": (
        ("bf16[32,48]", "bf16[48,64]"),
        "a = bf16[32,48] fusion(p0), kind=kCustom, calls=left, backend_config={\"fusion_backend_config\":{\"kind\":"
        "\"__triton_nested_gemm_fusion\",\"block_level_fusion_config\":{\"output_tiles\":[{\"sizes\":[\"16\",\"32\"]}]}}}\n"
        "ROOT d = f32[32,64] dot(a, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[32,64]",
    ),
}  # fmt: skip
LEFT = "left {\n p = bf16[32,48] parameter(0)\n ROOT n = bf16[32,48] negate(p)\n}\n"
KINDS = (
    "__triton",
    "__triton_gemm",
    "__triton_nested_gemm_fusion",
    "__cudnn$fusion",
    "__custom_fusion",
    "__row_blocks",
)


def program(body: str, config: str) -> str:
    shapes, lines, result = BODIES[body]
    parameters = "\n".join(f"p{n} = {s} parameter({n})" for n, s in enumerate(shapes))
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    return (
        f"HloModule m\n{ADD}{FIRST}{LEFT}body {{\n{parameters}\n{lines}\n}}\n"
        f"ENTRY e {{\n{parameters}\nROOT f = {result} fusion({names}), kind=kCustom, calls=body{config}\n}}\n"
    )


def check(text: str, targets: tuple[str, ...] = ("cpu", "sim:sm_90")) -> dict[str, list[str]]:
    """The emitters of each target's kernels; values are the evaluator's."""
    module, random = parse(text), np.random.default_rng(0)
    inputs = []
    for p in module.entry.parameters:
        t = p.shape.element_type
        values = random.standard_normal(p.shape.dims) if t.is_float else random.integers(0, 4, p.shape.dims)
        inputs.append(np.asarray(values).astype(t.dtype))
    wanted = evaluate(module, *inputs)
    found = {}
    for target in targets:
        made = heron.compile(module, target=target)
        got = made(*inputs)
        for a, b in zip(_flat(got), _flat(wanted), strict=True):
            a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-4)
        found[target] = [k.emitter for k in made.kernels]
    return found


def _flat(value: object) -> list[object]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def config(kind: str, **members: object) -> str:
    return ", backend_config=" + json.dumps({"fusion_backend_config": {"kind": kind, **members}})


def tiles(*sizes: object, **more: object) -> dict[str, object]:
    return {"output_tiles": [{"sizes": list(s) if isinstance(s, tuple) else s} for s in sizes], **more}


@pytest.mark.parametrize("kind", ["", *KINDS])
@pytest.mark.parametrize("body", BODIES)
def test_fusions_without_tiles(body: str, kind: str) -> None:
    check(program(body, config(kind) if kind else ""))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("softmax", config("__triton", block_level_fusion_config=tiles(("1", "32"), num_warps="1", num_ctas=1))),
        ("softmax", config("__triton", block_level_fusion_config=tiles(("2", "24"), num_warps="3"))),
        ("scalar and array", config("__triton", block_level_fusion_config=tiles((), ("16",)))),
        ("product", config("__triton_gemm", triton_gemm_config={"block_m": "16", "block_n": 32, "block_k": "16"})),
        (
            "fusions inside",
            config("__triton_nested_gemm_fusion", block_level_fusion_config=tiles((16, 64), num_stages=3)),
        ),
    ],
)
def test_stated_tiles_are_taken(body: str, text: str) -> None:
    made = check(program(body, text))
    assert "block" not in made["cpu"]
    if body != "scalar and array":
        assert made["sim:sm_90"] == ["block"]


_SIZE = st.sampled_from(
    ["1", 1, "4", 8, "16", 32, "64", 128, 48, 0, -4, "1e999", "x", None, 3.5, 1 << 70, True, [], {}]
)
_TILE = st.lists(_SIZE, max_size=3).map(lambda sizes: {"sizes": sizes})
_BLOCK = st.fixed_dictionaries(
    {},
    optional={
        "output_tiles": st.lists(_TILE | _SIZE, max_size=3) | _SIZE,
        "num_warps": _SIZE, "num_stages": _SIZE, "num_ctas": _SIZE, "row_step": _SIZE,
        "is_tma_allowed": _SIZE, "is_warp_specialization_allowed": _SIZE, "dot_precision": _SIZE, "news": _SIZE,
    },
)  # fmt: skip
_GEMM = st.fixed_dictionaries(
    {}, optional={n: _SIZE for n in ("block_m", "block_n", "block_k", "split_k", "num_stages", "num_warps")}
)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(BODIES)), st.sampled_from(KINDS), _BLOCK | _SIZE, _GEMM | _SIZE)
def test_any_config_runs(body: str, kind: str, block: object, gemm: object) -> None:
    check(program(body, config(kind, block_level_fusion_config=block, triton_gemm_config=gemm)), ("sim:sm_90",))


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(BODIES)), st.sampled_from(KINDS), _BLOCK | _SIZE)
def test_any_config_has_a_kernel(body: str, kind: str, block: object) -> None:
    """Also of a fusion that no pass has looked at: what no tiles compute, another emitter does, and says why."""
    fusion = parse(program(body, config(kind, block_level_fusion_config=block))).entry.root
    kernel = emit_fusion(fusion, "k", targets.get("sim:sm_90"))
    assert kernel.decision is not None
    assert emit_fusion(fusion, "k", targets.get("cpu")).emitter != "block"


def test_why_not_is_told() -> None:
    text = program("dynamic slice", config("__triton", block_level_fusion_config=tiles((4, 8))))
    decisions = heron.compile(parse(text), target="sim:sm_90").trace.decisions
    assert any("dynamic-slice" in d.reason for d in decisions if not d.ok)
    kernel = emit_fusion(parse(text).entry.root, "k", targets.get("sim:sm_90"))
    assert kernel.decision is not None and "no tiles" in kernel.decision.reason
