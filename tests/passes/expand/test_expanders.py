"""Expanders against the evaluator: every form of each op, on values that break careless arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import by_name
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import difference, random_array
from heron.passes.framework.context import PassContext
from tests.passes.values import special_values


def module_of(body: str, before: str = "") -> Module:
    return parse(f"HloModule m\n{before}\nENTRY main {{\n" + body.replace("; ", "\n") + "\n}\n")


def inputs_of(module: Module, special: bool, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [p.shape for p in module.entry.parameters]
    if special:
        return [rng.choice(special_values(s.element_type, "exact"), s.dims) for s in shapes]
    return [random_array(s.element_type, s.dims, rng) for s in shapes]


def run_pass(name: str, module: Module, **options: object) -> bool:
    changed = PassContext().run_pass(registry.get(name, **options), module)
    verify(module)
    return changed


def assert_same_values(name: str, module: Module, inputs: list[np.ndarray], exact: bool, **options: object) -> None:
    wanted = Evaluator(module).run(*inputs)
    assert run_pass(name, module, **options)
    assert not run_pass(name, module, **options), "a second run changed something again"
    found = Evaluator(module).run(*inputs)
    assert isinstance(wanted, tuple) == isinstance(found, tuple)
    for old, new in zip(*(v if isinstance(v, tuple) else (v,) for v in (wanted, found)), strict=True):
        old, new = np.asarray(old), np.asarray(new)
        if exact:
            np.testing.assert_array_equal(new, old, strict=True)
        assert difference(old, new) is None


FLOATS = "f4e2m1fn f8e3m4 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu f16 bf16 f32 f64".split()


@pytest.mark.parametrize("t", FLOATS)
def test_total_order(t: str) -> None:
    """All pairs of up to 256 bit patterns, spread over the wider types."""
    element_type = by_name(t)
    bits = element_type.bits
    if bits <= 8:
        every = np.arange(1 << bits, dtype=np.uint8).view(element_type.dtype)
    else:
        patterns = np.random.default_rng(0).integers(0, 1 << bits, 100, np.uint64, endpoint=False)
        every = np.concatenate(
            [patterns.astype(f"u{bits // 8}").view(element_type.dtype), special_values(element_type, "exact")]
        )
    n = len(every)
    shape = f"{t}[{n},{n}]"
    body = f"a = {t}[{n}] parameter(0); x = {shape} broadcast(a), dimensions={{0}}; y = {shape} broadcast(a), "
    body += "dimensions={1}"
    results = [f"r{d} = pred[{n},{n}] compare(x, y), direction={d}, type=TOTALORDER" for d in ("LT", "GE", "EQ")]
    body += "; " + "; ".join(results) + f"; ROOT r = ({', '.join([f'pred[{n},{n}]'] * 3)}) tuple(rLT, rGE, rEQ)"
    assert_same_values("comparison-expander", module_of(body), [every], exact=True)


BITS = [("u32", "3", "u8", "3,4"), ("f64", "2,3", "f32", "2,3,2"), ("s8", "5", "s4", "5,2"), ("u8", "8", "u1", "8,8")]


@pytest.mark.parametrize(("wide", "few", "narrow", "many"), BITS)
def test_bits_of_other_widths(wide: str, few: str, narrow: str, many: str) -> None:
    rng = np.random.default_rng(2)
    for source, dims, to, result in ((wide, few, narrow, many), (narrow, many, wide, few)):
        module = module_of(f"x = {source}[{dims}] parameter(0); ROOT r = {to}[{result}] bitcast-convert(x)")
        shape = module.entry.parameters[0].shape
        if shape.element_type.bits < 8:
            low = -(1 << shape.element_type.bits - 1) if shape.element_type.is_signed else 0
            x = rng.integers(low, low + (1 << shape.element_type.bits), shape.dims).astype(shape.element_type.dtype)
        else:
            x = np.frombuffer(rng.bytes(shape.byte_size), shape.element_type.dtype).reshape(shape.dims)
        wanted = Evaluator(module).run(x)
        assert run_pass("bitcast-dtypes-expander", module)
        assert Evaluator(module).run(x).tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("t", "bits"), [("f32", "u32"), ("bf16", "u16"), ("f16", "u16"), ("f64", "u64")])
@pytest.mark.parametrize("to", ["s8", "s32", "s64", "s4"])
def test_stochastic_convert(t: str, bits: str, to: str) -> None:
    for special in (False, True):
        module = module_of(
            f"x = {t}[40] parameter(0); b = {bits}[40] parameter(1); ROOT r = {to}[40] stochastic-convert(x, b)"
        )
        x, b = inputs_of(module, special)
        b = np.frombuffer(np.random.default_rng(5).bytes(b.nbytes), b.dtype)
        assert_same_values("stochastic-convert-decomposer", module, [x, b], exact=True)


EXACT = {
    "real-imag-expander": ["x = bf16[4] parameter(0); a = bf16[4] real(x); b = bf16[4] imag(x); "
                           "ROOT r = (bf16[4], bf16[4]) tuple(a, b)"],
    "optimization-barrier-expander": [
        "x = f32[4] parameter(0); t = (f32[4], f32[4]) tuple(x, x); b = (f32[4], f32[4]) opt-barrier(t); "
        "ROOT r = f32[4] get-tuple-element(b), index=1",
        "x = f32[0] parameter(0); ROOT r = f32[0] opt-barrier(x)",
        "x = (f32[0], s4[]) parameter(0); ROOT r = (f32[0], s4[]) opt-barrier(x)",
    ],
    "dynamic-index-splitter": [
        "x = f32[4,8] parameter(0); u = f32[2,3] parameter(1); i = u8[2] parameter(2); "
        "ROOT r = f32[4,8] dynamic-update-slice(x, u, i)",
        "x = s4[5] parameter(0); i = s32[1] parameter(1); ROOT r = s4[2] dynamic-slice(x, i), dynamic_slice_sizes={2}",
        "x = f32[] parameter(0); i = s32[0] parameter(1); ROOT r = f32[] dynamic-slice(x, i), dynamic_slice_sizes={}",
    ],
    "convolution-4d-expander": [
        "x = s32[2,1,5,4,6,3] parameter(0); k = s32[2,1,3,4,3,4] parameter(1); ROOT r = s32[2,1,5,1,4,4] "
        "convolution(x, k), window={size=1x2x3x4 pad=0_0x0_1x0_0x1_0 stride=1x1x2x1}, dim_labels=b0123f_10io23->b0123f",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "body"), [(name, b) for name, bodies in EXACT.items() for b in bodies])
def test_exact(name: str, body: str) -> None:
    module = module_of(body)
    leaves = [s for p in module.entry.parameters for _, s in p.shape.leaves()]
    inputs = [random_array(s.element_type, s.dims, np.random.default_rng(3)) for s in leaves]
    assert_same_values(name, module, inputs, exact=True)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_one_vector_of_starts_in_a_fusion(target: str) -> None:
    """Fusions that a program came with have no other form of it a kernel could compute."""
    module = parse("""HloModule m
f { x = f32[4,8] parameter(0) u = f32[2,3] parameter(1) i = s32[2] parameter(2)
  c = s32[2] constant({1, 2}) p = f32[2,3] dynamic-slice(x, c), dynamic_slice_sizes={2,3}
  v = f32[2,3] add(p, u) ROOT r = f32[4,8] dynamic-update-slice(x, v, i) }
ENTRY e { x = f32[4,8] parameter(0) u = f32[2,3] parameter(1) i = s32[2] parameter(2)
  ROOT r = f32[4,8] fusion(x, u, i), kind=kLoop, calls=f }""")
    rng = np.random.default_rng(5)
    inputs = [rng.normal(size=d).astype(np.float32) for d in ((4, 8), (2, 3))] + [np.array([2, 7], np.int32)]
    np.testing.assert_array_equal(heron.compile(module, target)(*inputs), heron.evaluate(module, *inputs)[0])


GROUPS = [
    # input, kernel, output, attributes
    ("s32[2,7,6]", "s32[3,3,4]", "s32[2,5,4]", "window={size=3}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
    ("s32[2,6,7]", "s32[6,1,3]", "s32[2,6,5]", "window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=6"),
    ("s32[6,7,2]", "s32[3,2,9]", "s32[2,5,9]", "window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=3"),
    ("s32[2,7,6]", "s32[4,3,2]", "s32[5,3,4]", "window={size=3}, dim_labels=f0b_o0i->0bf, batch_group_count=2"),
    ("s32[4,2]", "s32[2,2]", "s32[2,2]", "dim_labels=bf_io->bf, batch_group_count=2"),
    ("s32[2,4]", "s32[2,2]", "s32[2,2]", "dim_labels=fb_io->bf, batch_group_count=2"),
    ("s32[2,0,6]", "s32[1,3,4]", "s32[2,0,4]", "window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2"),
]


@pytest.mark.parametrize(("x", "k", "result", "attrs"), GROUPS)
@pytest.mark.parametrize("batch_only", [False, True])
def test_convolution_groups(x: str, k: str, result: str, attrs: str, batch_only: bool) -> None:
    module = module_of(f"x = {x} parameter(0); k = {k} parameter(1); ROOT r = {result} convolution(x, k), {attrs}")
    if batch_only and "feature_group" in attrs:
        assert not run_pass("convolution-group-converter", module, batch_only=True)
        return
    inputs = inputs_of(module, special=False)
    assert_same_values("convolution-group-converter", module, inputs, exact=True, batch_only=batch_only)
    convolution = next(i for i in module.instructions() if i.opcode == "convolution")
    assert convolution.batch_group_count == 1
    assert convolution.feature_group_count == 1 or batch_only


RAGGED = [
    ("f32[11,5]", "f32[3,5,7]", "s32[3]", "f32[11,7]", "{}", "{1}", "{}", "{1}", 0, "{0}"),
    ("f32[4,11,5]", "f32[4,3,5,7]", "s64[4,3]", "f32[4,11,7]", "{0}", "{2}", "{0}", "{2}", 1, "{1}"),
    ("f32[4,11,5]", "f32[5,3,4,7]", "u8[3]", "f32[4,11,7]", "{0}", "{2}", "{2}", "{0}", 1, "{1}"),
    ("f32[6,5]", "f32[6,4]", "s32[3]", "f32[3,5,4]", "{}", "{0}", "{}", "{0}", 0, "{}"),
    ("f32[2,6,5]", "f32[6,4,2]", "s32[2,3]", "f32[3,2,5,4]", "{0}", "{1}", "{2}", "{0}", 1, "{}"),
    ("f32[6,5,2]", "f32[6,2,4]", "s32[3]", "f32[6,5,4]", "{0}", "{2}", "{0}", "{1}", 0, "{}"),
    ("f32[2,6,5]", "f32[3,5,4]", "s32[2,3]", "f32[2,6,4]", "{}", "{2}", "{}", "{1}", 1, "{0}"),
]


@pytest.mark.parametrize("case", RAGGED)
def test_ragged_dot(case: tuple) -> None:
    x, y, sizes, result, xb, xc, yb, yc, ragged, group = case
    attrs = f"lhs_batch_dims={xb}, lhs_contracting_dims={xc}, rhs_batch_dims={yb}, rhs_contracting_dims={yc}, "
    attrs += f"lhs_ragged_dims={{{ragged}}}, rhs_group_dims={group}"
    module = module_of(
        f"x = {x} parameter(0); y = {y} parameter(1); s = {sizes} parameter(2); "
        f"ROOT r = {result} ragged-dot(x, y, s), {attrs}"
    )
    for seed in range(3):  # sizes that leave elements over, and that go beyond the end
        inputs = inputs_of(module.clone(), special=False, seed=seed)
        inputs[2] = np.random.default_rng(seed).integers(0, 5, inputs[2].shape).astype(inputs[2].dtype)
        assert_same_values("ragged-dot-rewriter", module.clone(), inputs, exact=False)


@pytest.mark.parametrize("t", ["f8e4m3fn", "f8e5m2", "f4e2m1fn", "bf16"])
@pytest.mark.parametrize(("left", "right"), [("2,2", ""), ("", "4,3"), ("1,4", "2,1"), ("", "")])
def test_scaled_dot(t: str, left: str, right: str) -> None:
    module = module_of(
        f"x = {t}[2,4] parameter(0); y = {t}[4,3] parameter(1); s = f8e8m0fnu[{left}] parameter(2); "
        f"w = f8e8m0fnu[{right}] parameter(3); "
        "ROOT r = f32[2,3] scaled-dot(x, y, s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    inputs = inputs_of(module, special=False)
    inputs[2:] = [np.abs(np.random.default_rng(1).normal(size=s.shape)).astype(s.dtype) for s in inputs[2:]]
    assert_same_values("scaled-dot-rewriter", module, inputs, exact=False)


@pytest.mark.parametrize("t", ["f32", "f64", "bf16", "f16"])
def test_random_floats(t: str) -> None:
    module = module_of(
        f"a = {t}[] parameter(0); b = {t}[] parameter(1); u = {t}[100,200] rng(a, b), distribution=rng_uniform; "
        f"n = {t}[20000] rng(a, b), distribution=rng_normal; ROOT r = ({t}[100,200], {t}[20000]) tuple(u, n)"
    )
    assert run_pass("rng-expander", module)
    a, b = (np.array(v, by_name(t).dtype) for v in (-3, 5))
    uniform, normal = (np.asarray(v, np.float64) for v in Evaluator(module).run(a, b))
    assert uniform.min() >= -3 and uniform.max() < 5 and abs(uniform.mean() - 1) < 0.05
    assert abs(uniform.std() - 8 / 12**0.5) < 0.03
    assert abs(normal.mean() + 3) < 0.1 and abs(normal.std() - 5) < 0.1
    assert abs(((normal + 3) ** 3).mean()) < 6 and abs((np.abs(normal + 3) < 5).mean() - 0.6827) < 0.02


@pytest.mark.parametrize(
    ("t", "low", "high"), [("s8", -100, 100), ("u8", 3, 250), ("s64", -(2**62), 2**62 + 5), ("u32", 0, 2**32 - 1)]
)
def test_random_integers(t: str, low: int, high: int) -> None:
    module = module_of(
        f"a = {t}[] parameter(0); b = {t}[] parameter(1); ROOT r = {t}[5000] rng(a, b), distribution=rng_uniform"
    )
    assert run_pass("rng-expander", module)
    dtype = by_name(t).dtype
    drawn = Evaluator(module).run(np.array(low, dtype), np.array(high, dtype)).astype(np.float64)
    assert drawn.min() >= low and drawn.max() < high
    assert abs((drawn - low).mean() / (high - low) - 0.5) < 0.02
    again = Evaluator(module).run(np.array(7, dtype), np.array(7, dtype))
    assert (again == 7).all()
