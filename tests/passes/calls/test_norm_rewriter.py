"""cudnn-norm-rewriter: which layer norms become calls, of which kind, with values kept; calls on every target."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron import HeronError, Options, targets
from heron.compiling import compile
from heron.hlo.calls import norm
from heron.hlo.calls.norm import NormConfig
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck
from heron.passes.framework.context import PassContext

HEAD = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[6,2,4] parameter(0)
  scale = f32[2,4] parameter(1)
  bias = f32[2,4] parameter(2)
  zero = f32[] constant(0)
  n = f32[] constant(8)
  ns = f32[6] broadcast(n), dimensions={}
  total = f32[6] reduce(x, zero), dimensions={1,2}, to_apply=add
  mean = f32[6] divide(total, ns)
  means = f32[6,2,4] broadcast(mean), dimensions={0}
  centred = f32[6,2,4] subtract(x, means)
  tiny = f32[] constant(0.001)
  tinies = f32[6] broadcast(tiny), dimensions={}
"""
CENTRED = """  square = f32[6,2,4] multiply(centred, centred)
  squares = f32[6] reduce(square, zero), dimensions={1,2}, to_apply=add
  variance = f32[6] divide(squares, ns)
"""
OF_SQUARES = """  square = f32[6,2,4] multiply(x, x)
  squares = f32[6] reduce(square, zero), dimensions={1,2}, to_apply=add
  each = f32[6] divide(squares, ns)
  meansquare = f32[6] multiply(mean, mean)
  less = f32[6] subtract(each, meansquare)
  zeros = f32[6] broadcast(zero), dimensions={}
  variance = f32[6] maximum(zeros, less)
"""
TAIL = """  more = f32[6] add(variance, tinies)
  factor = f32[6] rsqrt(more)
  factors = f32[6,2,4] broadcast(factor), dimensions={0}
  g = f32[6,2,4] broadcast(scale), dimensions={1,2}
  b = f32[6,2,4] broadcast(bias), dimensions={1,2}
"""
PLAIN = "  normal = f32[6,2,4] multiply(centred, factors)\n  scaled = f32[6,2,4] multiply(normal, g)\n"
#: as flax writes it
SCALED_FIRST = "  by = f32[6,2,4] multiply(factors, g)\n  scaled = f32[6,2,4] multiply(centred, by)\n"
#: divided by a root
ROOTS = """  root = f32[6] sqrt(more)
  roots = f32[6,2,4] broadcast(root), dimensions={0}
  normal = f32[6,2,4] divide(centred, roots)
  scaled = f32[6,2,4] multiply(normal, g)
"""
ROOT = "  ROOT y = f32[6,2,4] add(scaled, b)\n}\n"


def rewritten(text: str, libraries: str = "auto") -> tuple[Module, PassContext]:
    module = parse(text, verify=True)
    before, ctx = ValueCheck(module), PassContext(Options(libraries=libraries), target=targets.get("sm_90"))
    registry.get("dce").run(module, ctx)
    registry.get("cudnn-norm-rewriter").run(module, ctx)
    verify(module)
    before.after("cudnn-norm-rewriter", module)
    registry.get("dce").run(module, ctx)
    return module, ctx


def kinds(module: Module) -> list[str]:
    return [norm.read(i).kind for i in module.instructions() if i.opcode == "custom-call"]


@pytest.mark.parametrize("variance", [CENTRED, OF_SQUARES], ids=["centred", "of squares"])
@pytest.mark.parametrize("product", [PLAIN, SCALED_FIRST, ROOTS], ids=["plain", "scaled first", "divided"])
def test_forms(variance: str, product: str) -> None:
    module, _ = rewritten(HEAD + variance + TAIL + product + ROOT)
    assert kinds(module) == [norm.INFERENCE]
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert [o.shape.dims for o in call.operands] == [(6, 2, 4, 1), (1, 2, 4, 1), (1, 2, 4, 1)]
    assert not any(i.opcode == "reduce" for i in module.instructions())


def test_what_a_derivative_reads_is_given_too() -> None:
    rest = "  y = f32[6,2,4] add(scaled, b)\n  ROOT t = (f32[6,2,4], f32[6], f32[6]) tuple(y, mean, factor)\n}\n"
    module, _ = rewritten(HEAD + CENTRED + TAIL + PLAIN + rest)
    assert kinds(module) == [norm.TRAINING]
    assert not any(i.opcode in ("reduce", "rsqrt") for i in module.instructions())


def test_a_root_that_others_read() -> None:
    rest = "  y = f32[6,2,4] add(scaled, b)\n  ROOT t = (f32[6,2,4], f32[6], f32[6]) tuple(y, mean, root)\n}\n"
    module, _ = rewritten(HEAD + CENTRED + TAIL + ROOTS + rest)
    assert kinds(module) == [norm.TRAINING]
    assert not any(i.opcode in ("reduce", "sqrt") for i in module.instructions())


def test_narrow_arrays_are_read_and_written_as_they_are() -> None:
    text = HEAD.replace("x = f32[6,2,4] parameter(0)", "h = bf16[6,2,4] parameter(0)\n  x = f32[6,2,4] convert(h)")
    rest = "  y = f32[6,2,4] add(scaled, b)\n  ROOT r = bf16[6,2,4] convert(y)\n}\n"
    module, _ = rewritten(text + CENTRED + TAIL + PLAIN + rest)
    (call,) = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert [o.shape.element_type.name for o in call.operands] == ["bf16", "f32", "f32"]
    assert "convert" not in [i.opcode for i in module.instructions()]


DERIVATIVE = """  dy = f32[6,2,4] parameter(3)
  y = f32[6,2,4] add(scaled, b)
  dbias = f32[2,4] reduce(dy, zero), dimensions={0}, to_apply=add
  dn = f32[6,2,4] multiply(dy, normal)
  dscale = f32[2,4] reduce(dn, zero), dimensions={0}, to_apply=add
"""
#: as a textbook has it
SHORT = """  t = f32[6,2,4] multiply(dy, g)
  st = f32[6] reduce(t, zero), dimensions={1,2}, to_apply=add
  tn = f32[6,2,4] multiply(t, normal)
  stn = f32[6] reduce(tn, zero), dimensions={1,2}, to_apply=add
  mt = f32[6] divide(st, ns)
  mtn = f32[6] divide(stn, ns)
  mts = f32[6,2,4] broadcast(mt), dimensions={0}
  mtns = f32[6,2,4] broadcast(mtn), dimensions={0}
  second = f32[6,2,4] multiply(normal, mtns)
  one = f32[6,2,4] subtract(t, mts)
  two = f32[6,2,4] subtract(one, second)
  dx = f32[6,2,4] multiply(two, factors)
"""
#: as reverse mode writes it, step by step
LONG = """  t = f32[6,2,4] multiply(g, dy)
  a = f32[6,2,4] multiply(t, factors)
  tc = f32[6,2,4] multiply(t, centred)
  s = f32[6] reduce(tc, zero), dimensions={1,2}, to_apply=add
  slope = f32[6] divide(factor, more)
  minus = f32[] constant(-0.5)
  minuses = f32[6] broadcast(minus), dimensions={}
  dv = f32[6] multiply(slope, minuses)
  dfactor = f32[6] multiply(s, dv)
  each = f32[6] divide(dfactor, ns)
  eachs = f32[6,2,4] broadcast(each), dimensions={0}
  two = f32[] constant(2)
  twos = f32[6,2,4] broadcast(two), dimensions={}
  twice = f32[6,2,4] multiply(centred, twos)
  sq = f32[6,2,4] multiply(eachs, twice)
  dc = f32[6,2,4] add(a, sq)
  less = f32[6,2,4] negate(dc)
  dm = f32[6] reduce(less, zero), dimensions={1,2}, to_apply=add
  dmean = f32[6] divide(dm, ns)
  dmeans = f32[6,2,4] broadcast(dmean), dimensions={0}
  dx = f32[6,2,4] add(dc, dmeans)
"""
GRADIENTS = "  ROOT r = (f32[6,2,4], f32[6,2,4], f32[2,4], f32[2,4]) tuple(y, dx, dscale, dbias)\n}\n"


@pytest.mark.parametrize("form", [SHORT, LONG], ids=["short", "long"])
def test_a_derivative_is_a_call_however_it_is_written(form: str) -> None:
    module, ctx = rewritten(HEAD + CENTRED + TAIL + PLAIN + DERIVATIVE + form + GRADIENTS)
    assert kinds(module) == [norm.TRAINING, norm.BACKWARD]
    assert not any(i.opcode in ("reduce", "multiply", "rsqrt") for i in module.entry.instructions)
    assert norm.BACKWARD in ctx.trace.decisions[0].reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("constant(-0.5)", "constant(-0.4)"),
        ("negate(dc)", "copy(dc)"),
        ("add(a, sq)", "subtract(a, sq)"),
        ("multiply(g, dy)", "add(g, dy)"),
    ],
)
def test_what_is_no_derivative_stays(old: str, new: str) -> None:
    assert old in LONG
    module, _ = rewritten(HEAD + CENTRED + TAIL + PLAIN + DERIVATIVE + LONG.replace(old, new) + GRADIENTS)
    assert kinds(module) == [norm.TRAINING]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n = f32[] constant(8)", "n = f32[] constant(7)"),
        ("divide(squares, ns)", "multiply(squares, ns)"),
        ("zero = f32[] constant(0)", "zero = f32[] constant(1)"),
        ("rsqrt(more)", "sqrt(more)"),
    ],
)
def test_what_is_no_layer_norm_stays(old: str, new: str) -> None:
    text = HEAD + CENTRED + TAIL + PLAIN + ROOT
    assert old in text
    assert kinds(rewritten(text.replace(old, new))[0]) == []


@pytest.mark.parametrize(
    ("text", "libraries", "why"),
    [
        (HEAD + CENTRED + TAIL + PLAIN + ROOT, "none", "leaves cudnn out"),
        ((HEAD + CENTRED + TAIL + PLAIN + ROOT).replace("f32", "f64"), "auto", "norms in f32"),
    ],
    ids=["library", "type"],
)
def test_refusals_are_decisions(text: str, libraries: str, why: str) -> None:
    module, ctx = rewritten(text, libraries=libraries)
    assert kinds(module) == [] and [d.ok for d in ctx.trace.decisions] == [False]
    assert why in ctx.trace.decisions[0].reason


def call(kind: str, x: str, *operands: str) -> str:
    row = "[1," + x.split(",", 1)[1]
    rows = x.split(",")[0] + ",1,1,1]"
    given = {
        norm.INFERENCE: ([x, row, row], [x]),
        norm.TRAINING: ([x, row, row], [x, rows, rows]),
        norm.BACKWARD: ([x, row, x, rows, rows], [x, row, row]),
    }[kind]
    lines = [f"  p{n} = f32{s} parameter({n})" for n, s in enumerate(given[0])]
    names = ", ".join(f"p{n}" for n in range(len(given[0])))
    result = ", ".join(f"f32{s}" for s in given[1])
    end = f'custom_call_target="{norm.TARGET}", backend_config={NormConfig(kind, 0.001)}'
    lines += [f"  c = ({result}, u8[0]) custom-call({names}), {end}"]
    lines += [f"  r{n} = f32{s} get-tuple-element(c), index={n}" for n, s in enumerate(given[1])]
    parts = ", ".join(f"r{n}" for n in range(len(given[1])))
    return "HloModule m\nENTRY main {\n" + "\n".join(lines) + f"\n  ROOT t = ({result}) tuple({parts})\n}}\n"


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("kind", norm.KINDS)
def test_calls(kind: str, target: str) -> None:
    module = parse(call(kind, "[5,8,1,1]"), verify=True)
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(p.shape.dims).astype(np.float32) for p in module.entry.parameters]
    executable = compile(module, target)
    for found, wanted in zip(executable.run(arrays), heron.evaluate(module, *arrays), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_the_derivative_is_that_of_the_norm() -> None:
    rng = np.random.default_rng(2)
    x, dy = rng.standard_normal((2, 4, 6, 1, 1))
    scale, bias = rng.standard_normal((2, 1, 6, 1, 1))
    from heron.evaluator.calls.norm import compute

    forward = NormConfig(norm.TRAINING, 0.01)
    _, mean, factor = compute(forward, (x, scale, bias))
    dx, dscale, dbias = compute(NormConfig(norm.BACKWARD, 0.01), (x, scale, dy, mean, factor))
    step = 1e-6
    for at, derivative in ((x, dx), (scale, dscale), (bias, dbias)):
        place = (0, 3, 0, 0)
        kept = at[place]
        at[place] = kept + step
        up = (compute(forward, (x, scale, bias))[0] * dy).sum()
        at[place] = kept - step
        down = (compute(forward, (x, scale, bias))[0] * dy).sum()
        at[place] = kept
        assert derivative[place] == pytest.approx((up - down) / (2 * step), rel=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("LAYER_FWD_INFER", "GROUP_FWD", "HLO171"),
        ("LAYER_FWD_INFER", "LAYER_BWD", "HLO171"),
        ('"epsilon":0.001', '"epsilon":"x"', "HLO170"),
        ("p1 = f32[1,8", "p1 = f32[8,1", "HLO172"),
    ],
)
def test_bad_calls(old: str, new: str, code: str) -> None:
    text = call(norm.INFERENCE, "[5,8,1,1]")
    assert old in text
    with pytest.raises(HeronError, match=code):
        compile(parse(text.replace(old, new)), "sim:sm_90")
