"""conv-rewriter, conv-padding-legalization and cudnn-fused-conv-rewriter: which calls, and that values stay."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from heron import Options, targets
from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.calls import convolution
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext

PASSES = ("conv-rewriter", "cudnn-fused-conv-rewriter", "conv-padding-legalization", "algebraic-simplifier", "dce")


def rewritten(body: str, math: str = "ieee", **options: str) -> Module:
    """The program after the passes, each compared with what was before."""
    module = parse("HloModule m\nENTRY main {\n" + body + "\n}\n", verify=True)
    before = ValueCheck(module)
    ctx = PassContext(Options(math=math, **options), target=targets.get("sm_90"))
    for name in PASSES:
        registry.get(name).run(module, ctx)
        verify(module)
        before.after(name, module)
    return module


def calls(module: Module) -> list[str]:
    found = []
    for i in module.instructions():
        if i.opcode == "custom-call":
            assert all(d.pad_low == d.pad_high >= 0 for d in i.window)
            c = convolution.read(i)
            given = (f" {c.activation}" if c.activation != "kNone" else "") + (
                f" a={c.scale:g}" if c.scale != 1 else ""
            )
            side = f" b={c.side_scale:g}" if c.side_scale else ""
            assert i.shape.tuple_shapes
            stored = i.shape.tuple_shapes[0].element_type
            found.append(f"{i.custom_call_target.removeprefix('__cudnn$conv')} {stored}{given}{side}")
    return found


@pytest.mark.parametrize(
    ("line", "x", "w", "result", "call"),
    [
        ("window={size=3x3}, dim_labels=b01f_01io->b01f", "2,6,6,3", "3,3,3,4", "2,4,4,4", "Forward"),
        ("window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01", "2,3,6,6", "4,3,3,3", "2,4,6,6", "Forward"),
        ("window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f", "2,6,6,3", "3,3,3,4", "2,3,3,4", "Forward"),
        ("window={size=3x3 pad=-1_0x2_0}, dim_labels=b01f_01io->b01f", "2,6,6,3", "3,3,3,4", "2,3,6,4", "Forward"),
        ("window={size=5 pad=2_2 rhs_dilate=1}, dim_labels=b0f_0io->b0f", "2,16,3", "5,3,4", "2,16,4", "Forward"),
        (
            "window={size=3x3 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=3",
            "2,7,7,3", "3,3,1,6", "2,3,3,6", "Forward",
        ),
        ("window={size=2x2x2}, dim_labels=b012f_012io->b012f", "1,3,3,3,2", "2,2,2,2,4", "1,2,2,2,4", "Forward"),
        # by the input: turned round, strides as dilation
        ("window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f", "2,6,6,4", "3,3,3,4", "2,6,6,3", "BackwardInput"),
        ("window={size=3x3 pad=2_1x2_1 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f", "2,3,3,4", "3,3,3,4", "2,6,6,3", "BackwardInput"),
        ("window={size=3x3 pad=2_2x2_2 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f", "2,4,4,4", "3,3,3,4", "2,6,6,3", "BackwardInput"),
        # by the filter: the window is larger than the result
        ("window={size=6x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf", "2,6,6,3", "2,6,6,4", "3,3,3,4", "BackwardFilter"),
        ("window={size=3x3 pad=0_1x0_1 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf", "2,6,6,3", "2,3,3,4", "3,3,3,4", "Forward"),
        ("window={size=5x5 pad=0_1x0_1 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf", "2,10,10,3", "2,5,5,4", "3,3,3,4", "BackwardFilter"),
    ],
)  # fmt: skip
def test_calls(line: str, x: str, w: str, result: str, call: str) -> None:
    body = f"x = f32[{x}] parameter(0)\nw = f32[{w}] parameter(1)\nROOT r = f32[{result}] convolution(x, w), {line}"
    assert calls(rewritten(body)) == [f"{call} f32"]


def test_a_reversed_filter_is_a_derivative_by_the_input() -> None:
    body = (
        "x = f32[2,6,6,4] parameter(0)\nw = f32[3,3,3,4] parameter(1)\nv = f32[3,3,3,4] reverse(w), dimensions={0,1}\n"
        "ROOT r = f32[2,6,6,3] convolution(x, v), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01oi->b01f"
    )
    assert calls(rewritten(body)) == ["BackwardInput f32"]


@pytest.mark.parametrize(
    ("line", "t", "w", "result"),
    [
        ("window={size=3x3 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f", "f32", "3,3,3,4", "2,9,9,4"),
        ("window={size=3x3}, dim_labels=b01f_01io->b01f", "s32", "3,3,3,4", "2,4,4,4"),
        ("window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=2", "f32", "3,3,3,4", "1,4,4,4"),
    ],
)
def test_what_is_left(line: str, t: str, w: str, result: str) -> None:
    body = f"x = {t}[2,6,6,3] parameter(0)\nw = {t}[{w}] parameter(1)\nROOT r = {t}[{result}] convolution(x, w), {line}"
    assert calls(rewritten(body)) == []


HEAD = """x = T[2,6,6,4] parameter(0)
w = T[3,3,4,4] parameter(1)
b = F[4] parameter(2)
z = Z[2,4,4,4] parameter(3)
bs = F[2,4,4,4] broadcast(b), dimensions={3}
zero = F[] constant(0)
zeros = F[2,4,4,4] broadcast(zero), dimensions={}
half = F[] constant(0.5)
halves = F[2,4,4,4] broadcast(half), dimensions={}
c = C[2,4,4,4] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f
"""


def program(rest: str, t: str = "f32", c: str = "f32", f: str = "f32", z: str = "f32") -> str:
    head = HEAD.replace("T[", f"{t}[").replace("C[", f"{c}[").replace("F[", f"{f}[").replace("Z[", f"{z}[")
    return head + rest.replace("F[", f"{f}[")


FORMULA = """a = f32[2,4,4,4] multiply(V, halves)
s = f32[2,4,4,4] multiply(Z, halves)
d = f32[2,4,4,4] add(a, s)
e = f32[2,4,4,4] add(d, bs)
"""


def test_scale_side_bias_and_relu() -> None:
    body = FORMULA.replace("V", "c").replace("Z", "z") + "ROOT r = f32[2,4,4,4] maximum(e, zeros)"
    assert calls(rewritten(program(body))) == ["BiasActivationForward f32 kRelu a=0.5 b=0.5"]


def test_narrow_types_keep_their_roundings() -> None:
    body = program("ROOT r = bf16[2,4,4,4] add(c, bs)", *["bf16"] * 4)
    assert calls(rewritten(body)) == ["Forward bf16"]
    assert calls(rewritten(body, "reassociate")) == ["BiasActivationForward bf16"]


def test_integers_1_clamped_to_s8() -> None:
    body = """low = s32[] constant(-128)
lows = s32[2,4,4,4] broadcast(low), dimensions={}
high = s32[] constant(127)
highs = s32[2,4,4,4] broadcast(high), dimensions={}
k = s32[2,4,4,4] clamp(lows, c, highs)
ROOT r = s8[2,4,4,4] convert(k)"""
    assert calls(rewritten(program(body, "s8", "s32"))) == ["Forward s8"]


def test_integers_2_stored_as_f32() -> None:
    assert calls(rewritten(program("ROOT r = f32[2,4,4,4] convert(c)", "s8", "s32"))) == ["Forward f32"]


S8_END = """low = f32[] constant(-128)
lows = f32[2,4,4,4] broadcast(low), dimensions={}
high = f32[] constant(127)
highs = f32[2,4,4,4] broadcast(high), dimensions={}
k = f32[2,4,4,4] clamp(lows, m, highs)
n = f32[2,4,4,4] round-nearest-even(k)
ROOT r = s8[2,4,4,4] convert(n)"""


def test_integers_3_the_formula_stored_as_s8() -> None:
    body = "v = f32[2,4,4,4] convert(c)\ny = f32[2,4,4,4] convert(z)\n" + FORMULA.replace("V", "v").replace("Z", "y")
    body += "m = f32[2,4,4,4] maximum(e, zeros)\n" + S8_END
    module = rewritten(program(body, "s8", "s32", z="s8"))
    assert calls(module) == ["BiasActivationForward s8 kRelu a=0.5 b=0.5"]
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert [str(o.shape.element_type) for o in call.operands] == ["s8", "s8", "f32", "s8"]


def test_integers_cut_off_instead_of_rounded_are_left() -> None:
    body = "v = f32[2,4,4,4] convert(c)\nm = f32[2,4,4,4] add(v, bs)\n" + S8_END.replace("convert(n)", "convert(k)")
    assert calls(rewritten(program(body, "s8", "s32"))) == ["BiasActivationForward f32"]


def test_integers_4_the_formula_stored_as_f32() -> None:
    body = "v = f32[2,4,4,4] convert(c)\n" + FORMULA.replace("V", "v").replace("Z", "z")
    body += "ROOT r = f32[2,4,4,4] maximum(e, zeros)"
    assert calls(rewritten(program(body, "s8", "s32"))) == ["BiasActivationForward f32 kRelu a=0.5 b=0.5"]


def test_without_the_library_nothing_changes() -> None:
    assert calls(rewritten(program("ROOT r = f32[2,4,4,4] add(c, bs)"), libraries="cublaslt")) == []


def padded(t: str, r: str, line: str, x: str, w: str, result: str, *more: str) -> list[str]:
    """The shapes of the operands and of the result of the call that padding leaves."""
    body = f"x = {t}[{x}] parameter(0)\nw = {t}[{w}] parameter(1)\nROOT r = {r}[{result}] convolution(x, w), {line}"
    module = parse("HloModule m\nENTRY main {\n" + body + "\n}\n", verify=True)
    before, ctx = ValueCheck(module), PassContext(Options(), target=targets.get("sm_90"))
    for name in ("conv-rewriter", "conv-padding-legalization", "cudnn-pad-for-convolutions", "algebraic-simplifier"):
        registry.get(name).run(module, ctx)
        verify(module)
        before.after(name, module)
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert call.shape.tuple_shapes
    return [",".join(map(str, s.dims)) for s in (*(o.shape for o in call.operands), call.shape.tuple_shapes[0])]


WINDOW = "window={size=3x3}, dim_labels=b01f_o01i->b01f"
BY_FILTER = "window={size=6x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf"
BY_INPUT = "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f"


@pytest.mark.parametrize(
    ("types", "line", "arrays", "wanted"),
    [
        ("s8 s32", WINDOW, "2,5,5,6 7,3,3,6 2,3,3,7", "2,5,5,8 8,3,3,8 2,3,3,8"),
        ("s8 s32", WINDOW, "2,5,5,8 4,3,3,8 2,3,3,4", "2,5,5,8 4,3,3,8 2,3,3,4"),
        ("bf16 bf16", WINDOW, "2,5,5,30 31,3,3,30 2,3,3,31", "2,5,5,32 32,3,3,32 2,3,3,32"),
        ("bf16 bf16", WINDOW, "2,5,5,3 31,3,3,3 2,3,3,31", "2,5,5,3 31,3,3,3 2,3,3,31"),  # too much more
        ("f32 f32", WINDOW, "2,5,5,30 31,3,3,30 2,3,3,31", "2,5,5,30 31,3,3,30 2,3,3,31"),
        ("f16 f16", BY_FILTER, "2,6,6,15 2,6,6,14 3,3,15,14", "2,6,6,16 2,6,6,16 16,3,3,16"),
        ("f16 f16", BY_INPUT, "2,6,6,14 3,3,15,14 2,6,6,15", "2,6,6,16 16,3,3,16 2,6,6,16"),
    ],
)
def test_features_are_padded_for_tensor_cores(types: str, line: str, arrays: str, wanted: str) -> None:
    assert padded(*types.split(), line, *arrays.split()) == wanted.split()


def test_a_padded_epilogue_has_its_bias_and_side_input_padded() -> None:
    text = program(FORMULA.replace("V", "c").replace("Z", "z") + "ROOT r = f32[2,4,4,4] maximum(e, zeros)")
    text = text.replace("f32[", "f16[").replace(",4]", ",14]").replace("[4]", "[14]").replace("3,3,4,14", "3,3,14,14")
    module = parse("HloModule m\nENTRY main {\n" + text + "\n}\n", verify=True)
    before, ctx = ValueCheck(module), PassContext(Options(math="reassociate"), target=targets.get("sm_90"))
    for name in ("conv-rewriter", "cudnn-fused-conv-rewriter", "cudnn-pad-for-convolutions", "algebraic-simplifier"):
        registry.get(name).run(module, ctx)
        verify(module)
        before.after(name, module)
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert call.custom_call_target == convolution.FUSED and [o.shape.dims[-1] for o in call.operands] == [16] * 4


def test_the_algorithm_that_takes_all_is_noted() -> None:
    body = f"x = f32[2,5,5,6] parameter(0)\nw = f32[7,3,3,6] parameter(1)\nROOT r = f32[2,3,3,7] convolution(x, w), {WINDOW}"
    module = rewritten(body)
    ctx = PassContext(Options(), target=targets.get("sm_90"))
    assert registry.get("conv-algorithm-picker").run(module, ctx)
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert convolution.read(call).algorithm == 1 and ctx.trace.decisions[-1].object == "cudnn 1"


@pytest.mark.parametrize("machine", ["sm_60", "sm_70", "sm_90"])
def test_features_side_by_side(machine: str) -> None:
    """Values stay, also of a bias and a side input; the program runs as it is."""
    text = """
HloModule m

ENTRY main {
  x = s8[2,5,5,32] parameter(0)
  w = s8[32,3,3,32] parameter(1)
  bias = f32[32] parameter(2)
  side = s8[2,3,3,32] parameter(3)
  c = (s8[2,3,3,32], u8[0]) custom-call(x, w, bias, side), window={size=3x3}, dim_labels=b01f_o01i->b01f,
    custom_call_target="__cudnn$convBiasActivationForward", backend_config={"cudnn_conv_backend_config":{"activation_mode":"kRelu","conv_result_scale":0.01,"side_input_scale":0.5}}
  ROOT r = s8[2,3,3,32] get-tuple-element(c), index=0
}
"""  # noqa: E501
    module = parse(text, verify=True)
    before = ValueCheck(module)
    ctx = PassContext(target=dataclasses.replace(targets.get("sm_90"), machine=machine))
    changed = registry.get("cudnn-vectorize-convolutions").run(module, ctx)
    verify(module)
    before.after("cudnn-vectorize-convolutions", module)
    assert changed == (machine != "sm_60")
    assert not registry.get("cudnn-vectorize-convolutions").run(module, ctx)
    if not changed:
        assert "no multiples of 4 on sm_60" in ctx.trace.decisions[-1].reason
        return
    assert ctx.trace.decisions[-1].reason == "its features are side by side already"
    executable = compile(module, "sim:sm_90")
    inputs = [np.random.default_rng(2).integers(-9, 9, p.shape.dims) for p in module.entry.parameters]
    arrays = [x.astype(p.shape.element_type.dtype) for x, p in zip(inputs, module.entry.parameters, strict=True)]
    np.testing.assert_array_equal(executable(*arrays), evaluate(parse(text), *arrays)[0])
    assert f"side_by_side={4 if machine == 'sm_70' else 32}" in executable.stage("thunks")


@pytest.mark.parametrize("target", ["Forward", "BackwardInput", "BackwardFilter"])
def test_features_outside_of_the_space(target: str) -> None:
    """As XLA:GPU prints convolutions of f32: row-major arrays of batch, features, space."""
    x, w, y = "f32[2,3,6,6]", "f32[4,3,3,3]", "f32[2,4,4,4]"
    first, second, result = {"Forward": (x, w, y), "BackwardInput": (y, w, x), "BackwardFilter": (x, y, w)}[target]
    module = parse(f"""HloModule m
ENTRY main {{
  a = {first}{{3,2,1,0}} parameter(0)
  b = {second}{{3,2,1,0}} parameter(1)
  ROOT r = ({result}{{3,2,1,0}}, u8[0]{{0}}) custom-call(a, b), window={{size=3x3}}, dim_labels=bf01_oi01->bf01,
    custom_call_target="__cudnn$conv{target}", operand_layout_constraints={{{first}{{3,2,1,0}}, {second}{{3,2,1,0}}}}
}}
""")
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(p.shape.dims).astype(np.float32) for p in module.entry.parameters]
    executable = compile(module, "sim:sm_90")
    assert "features_outside" in str(executable.stage("thunks"))
    np.testing.assert_allclose(executable.run(inputs)[0], evaluate(module, *inputs)[0], rtol=1e-6)


def test_layouts_that_cudnn_does_not_take_are_named() -> None:
    """The input has features outside of the space, the filter innermost."""
    x, w = "f32[2,3,6,6]{3,2,1,0}", "f32[4,3,3,3]{1,3,2,0}"
    text = f"""HloModule m
ENTRY main {{
  a = {x} parameter(0)
  b = {w} parameter(1)
  ROOT r = (f32[2,4,4,4]{{3,2,1,0}}, u8[0]{{0}}) custom-call(a, b), window={{size=3x3}}, dim_labels=bf01_oi01->bf01,
    custom_call_target="__cudnn$convForward", operand_layout_constraints={{{x}, {w}}}
}}
"""
    with pytest.raises(HeronError, match="GEN013") as refused:
        compile(parse(text), "sm_90").stage("thunks")
    assert "f32[4,3,3,3]{3,2,1,0}" in (refused.value.hint or "")
