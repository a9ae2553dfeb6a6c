"""Precision passes: values stay, and no op is left in a type its target does not compute in."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

from heron import targets
from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import BF16, F32, by_name
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.checks import ValueCheck, difference
from heron.passes.framework.context import PassContext
from heron.passes.precision.model.widen import computes, involves
from tests.hlo.generate import Program, programs
from tests.passes.expand.test_expanders import inputs_of, module_of

NARROW = ("bf16", "f16", "f8e5m2", "f8e4m3fn")


def run(name: str, module: Module, target: str = "", **options: object) -> bool:
    ctx = PassContext(target=targets.get(target) if target else None)
    changed = ctx.run_pass(registry.get(name, **options), module)
    verify(module)
    assert not ctx.run_pass(registry.get(name, **options), module), "a second run changed something again"
    return changed


def assert_exact(module: Module, before: Module, special: bool = True) -> None:
    inputs = inputs_of(before, special)
    wanted, found = Evaluator(before).run(*inputs), Evaluator(module).run(*inputs)
    pairs = zip(wanted, found, strict=True) if isinstance(wanted, tuple) else [(wanted, found)]
    for old, new in pairs:
        assert old.dtype == new.dtype
        same = (old == new) | (np.isnan(old.astype(np.float64)) & np.isnan(new.astype(np.float64)))
        assert same.all(), f"{old} became {new}"


BODY = """x = T[24] parameter(0); y = T[24] parameter(1); p = pred[24] compare(x, y), direction=LE
a = T[24] add(x, y); m = T[24] multiply(a, x); s = T[24] subtract(m, y); n = T[24] maximum(s, x)
g = T[24] negate(n); b = T[24] abs(g); c = T[24] clamp(x, b, y); d = T[24] select(p, c, a); q = pred[24] is-finite(m)
v = T[24] divide(x, y); w = T[24] sqrt(b); r = T[2,12] reshape(d)
ROOT t = (T[2,12], pred[24], T[24], T[24], T[24]) tuple(r, q, n, v, w)"""


@pytest.mark.parametrize("t", NARROW)
@pytest.mark.parametrize("target", ["", "cpu", "sm_80", "sm_90"])
def test_normalization(t: str, target: str) -> None:
    module = module_of(BODY.replace("T[", f"{t}["))
    before = module.clone()
    changed = run("float-normalization", module, target)
    assert changed == (t != "f16" or not target.startswith("sm"))
    left = [i.opcode for i in module.instructions() if computes(i) and involves(i, by_name(t))]
    if target == "sm_90" and t == "bf16":
        assert set(left) == {"add", "multiply", "subtract"}
    elif changed:
        assert not left
    inputs = inputs_of(before, special=True)
    for old, new in zip(Evaluator(before).run(*inputs), Evaluator(module).run(*inputs), strict=True):
        assert difference(old, new) is None


def test_what_a_reduction_applies_stays() -> None:
    """Reductions keep f32 accumulators by themselves when they know what they apply."""
    head = "add { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT c = bf16[] add(a, b) }"
    module = module_of(
        "x = bf16[5,40] parameter(0); z = bf16[] constant(0); ROOT r = bf16[5] reduce(x, z), dimensions={1}, to_apply=add",
        head,
    )
    assert not run("bf16-normalization", module)


def test_normalization_for_excess_precision_alone() -> None:
    body = "x = bf16[4] parameter(0); y = bf16[4] exponential(x); ROOT r = bf16[4] sine(y)"
    for math, count in (("ieee", 0), ("reassociate", 2)):
        module, ctx = module_of(body), PassContext(Options(math=math), target=targets.get("sm_90"))
        ctx.run_pass(registry.get("float-normalization", excess=True), module)
        ctx.run_pass(registry.get("simplify-fp-conversions"), module)
        assert sum(i.opcode == "convert" for i in module.instructions()) == count


@given(programs(tuple(map(by_name, ("bf16", "f32", "f16", "s32", "pred"))), 8))
@settings(max_examples=25, derandomize=True)
def test_random_programs(program: Program) -> None:
    for name in ("float-normalization", "element-type-converter", "bf16-propagation", "bf16-conversion-folding"):
        module = program.module.clone()
        before = ValueCheck(module)
        PassContext().run_pass(registry.get(name), module)
        verify(module)
        before.after(name, module)
        assert not PassContext().run_pass(registry.get(name), module)


MOVES = [
    "t = f32[8,4] transpose(x), dimensions={1,0}; ROOT r = bf16[8,4] convert(t)",
    "t = f32[4,10] pad(x, z), padding=0_0x1_1; c = f32[4,20] concatenate(t, t), dimensions={1}; ROOT r = bf16[4,20] convert(c)",
    "t = f32[8,8] concatenate(x, x), dimensions={0}; d = f32[2,8] dynamic-slice(t, i, i), dynamic_slice_sizes={2,8}; "
    "ROOT r = bf16[2,8] convert(d)",
    "s = f32[2,8] slice(x), slice={[0:2],[0:8]}; d = f32[4,8] dynamic-update-slice(x, s, i, i); v = bf16[4,8] convert(d); "
    "w = bf16[2,8] convert(s); ROOT r = (bf16[4,8], bf16[2,8]) tuple(v, w)",
]


CHOICES = [
    "y = f32[4,8] abs(x); m = f32[4,8] minimum(x, y); c = f32[4,8] clamp(x, m, y); ROOT r = bf16[4,8] convert(c)",
    "p = pred[4,8] compare(x, x), direction=EQ; n = f32[4,8] negate(x); s = f32[4,8] select(p, n, x); "
    "ROOT r = bf16[4,8] convert(s)",
    "m = f32[4] reduce(x, z), dimensions={1}, to_apply=largest; ROOT r = bf16[4] convert(m)",
    "m = f32[4,4] reduce-window(x, z), window={size=1x2 stride=1x2}, to_apply=largest; ROOT r = bf16[4,4] convert(m)",
]


@pytest.mark.parametrize("body", CHOICES)
def test_propagation_through_choices(body: str) -> None:
    head = "largest { a = f32[] parameter(0) b = f32[] parameter(1) ROOT m = f32[] maximum(a, b) }"
    body = "x = f32[4,8] parameter(0); z = f32[] constant(-inf); " + body
    module = module_of(body, head)
    before = module.clone()
    assert run("bf16-propagation", module)
    assert_exact(module, before)
    assert {i.opcode for i in module.entry.instructions if i.shape.element_type is F32} <= {"parameter", "constant"}


@pytest.mark.parametrize(("math", "target", "precision", "changes"), [
    ("ieee", "sm_90", "", False), ("reassociate", "sm_90", "", True), ("reassociate", "x86-64-v3", "", False),
    ("reassociate", "sm_90", ", operand_precision={highest,highest}", False),
])  # fmt: skip
def test_propagation_through_dots_is_asked_for(math: str, target: str, precision: str, changes: bool) -> None:
    module = module_of(
        "x = f32[4,8] parameter(0); y = f32[8,2] parameter(1); d = f32[4,2] dot(x, y), lhs_contracting_dims={1}, "
        f"rhs_contracting_dims={{0}}{precision}; ROOT r = bf16[4,2] convert(d)"
    )
    before = module.clone()
    ctx = PassContext(Options(math=math), target=targets.get(target))
    assert not registry.get("bf16-propagation").run(module, ctx)
    assert registry.get("bf16-propagation", dots=True).run(module, ctx) == changes
    verify(module)
    inputs = inputs_of(before, special=False)
    assert difference(Evaluator(before).run(*inputs), Evaluator(module).run(*inputs)) is None
    assert {o.shape.element_type for o in module.entry.root.operands} == ({BF16 if changes else F32})


@pytest.mark.parametrize("body", MOVES)
def test_propagation(body: str) -> None:
    module = module_of("x = f32[4,8] parameter(0); z = f32[] constant(3); i = s32[] constant(1); " + body)
    before = module.clone()
    assert run("bf16-propagation", module)
    assert_exact(module, before)
    assert all(i.opcode in ("parameter", "constant") for i in module.entry.instructions if i.shape.element_type is F32)


def test_propagation_leaves_what_is_read_unrounded() -> None:
    module = module_of(
        "x = f32[4,8] parameter(0); t = f32[8,4] transpose(x), dimensions={1,0}; v = bf16[8,4] convert(t); "
        "ROOT r = (bf16[8,4], f32[8,4]) tuple(v, t)"
    )
    assert not run("bf16-propagation", module)


DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def test_folding_asks_the_target() -> None:
    body = "x = bf16[4,8] parameter(0); y = bf16[8,2] parameter(1); a = f32[4,8] convert(x); b = f32[8,2] convert(y); "
    body += f"ROOT p = f32[4,2] dot(a, b), {DOT}"
    module = module_of(body)
    assert not run("bf16-conversion-folding", module, "x86-64-v3")
    before = module.clone()
    assert run("bf16-conversion-folding", module, "sm_80")
    assert [o.shape.element_type for o in module.entry.root.operands] == [BF16, BF16]
    assert_exact(module, before, special=False)


@pytest.mark.parametrize("rounded", [False, True])
def test_folding_wants_equal_operands(rounded: bool) -> None:
    body = f"x = bf16[4,8] parameter(0); y = f32[8,2] parameter(1); a = f32[4,8] convert(x); p = f32[4,2] dot(a, y), {DOT}; "
    body += "ROOT r = bf16[4,2] convert(p)" if rounded else "ROOT r = f32[4,2] negate(p)"
    assert not run("bf16-conversion-folding", module_of(body))


@pytest.mark.parametrize(
    ("x", "y", "result"),
    [("bf16", "f32", "f32"), ("bf16", "bf16", "f32"), ("f32", "f32", "bf16"), ("f32", "bf16", "bf16")],
)
def test_one_type_a_product(x: str, y: str, result: str) -> None:
    module = module_of(f"x = {x}[4,8] parameter(0); y = {y}[8,2] parameter(1); ROOT r = {result}[4,2] dot(x, y), {DOT}")
    before = module.clone()
    assert run("bf16-mixed-precision-removal", module)
    for i in module.instructions():
        assert i.opcode != "dot" or {o.shape.element_type for o in (i, *i.operands)} == {F32}
    inputs = inputs_of(before, special=False)
    assert difference(Evaluator(before).run(*inputs), Evaluator(module).run(*inputs)) is None


@pytest.mark.parametrize("result", ["bf16", "f32"])
def test_products_of_a_library_that_does_not_round(result: str) -> None:
    target = dataclasses.replace(targets.get("x86-64-v4"), floats=(("bf16", ("dot",)),))
    module = module_of(
        f"x = bf16[4,8] parameter(0); y = bf16[8,2] parameter(1); ROOT r = {result}[4,2] dot(x, y), {DOT}"
    )
    before = module.clone()
    registry.get("operand-upcaster", one_type=False, rounds=False).run(module, PassContext(target=target))
    (product,) = [i for i in module.instructions() if i.opcode == "dot"]
    assert [i.shape.element_type.name for i in (*product.operands, product)] == ["bf16", "bf16", "f32"]
    inputs = inputs_of(before, special=False)
    assert difference(Evaluator(before).run(*inputs), Evaluator(module).run(*inputs)) is None


def test_sub_byte_sizes() -> None:
    module = parse("""HloModule m
ENTRY e { x = (s4[4]{0}, f32[2]{0}) parameter(0) a = s4[4]{0} get-tuple-element(x), index=0 ROOT r = s4[4]{0} negate(a) }""")
    assert run("sub-byte-normalization", module, packed=True)
    assert str(module.entry.parameters[0].shape) == "(s4[4]{0:E(4)}, f32[2]{0})"
    assert run("sub-byte-normalization", module)
    assert "E(4)" not in str(module.entry)


#: types of operands and result, then of those and the product, for the CPU's library, and for that of a GPU
UPCASTS = [
    (("f32", "f32", "f32"), None, None),
    (("bf16", "bf16", "bf16"), ("f32", "f32"), None),
    (("bf16", "bf16", "f32"), ("f32", "f32"), None),
    (("bf16", "f32", "f32"), ("f32", "f32"), ("f32", "f32")),
    (("f16", "bf16", "bf16"), ("f32", "f32"), ("f32", "f32")),
    (("f32", "f32", "bf16"), ("f32", "f32"), ("f32", "f32")),
    (("f16", "f16", "bf16"), ("f32", "f32"), ("f16", "f32")),
    (("f32", "f32", "f64"), ("f64", "f64"), ("f64", "f64")),
    (("f8e4m3fn", "f8e4m3fn", "bf16"), ("f32", "f32"), None),
    (("f8e4m3fnuz", "f8e4m3fnuz", "f32"), ("f32", "f32"), ("f32", "f32")),
    (("c64", "f32", "c64"), ("c64", "c64"), ("c64", "c64")),
    (("c64", "f64", "c128"), ("c128", "c128"), ("c128", "c128")),
    (("s8", "s8", "s32"), None, None),
    (("s8", "s8", "pred"), None, None),
    (("s8", "f32", "f32"), ("f32", "f32"), ("f32", "f32")),
    (("s8", "s8", "f32"), ("f32", "f32"), ("f32", "f32")),
    (("f32", "f32", "s32"), ("f32", "f32"), ("f32", "f32")),
    (("bf16", "bf16", "s32"), ("f32", "f32"), ("f32", "f32")),
    (("c64", "c64", "f32"), ("c64", "c64"), ("c64", "c64")),
]


@pytest.mark.parametrize(("types", "cpu", "gpu"), UPCASTS, ids=lambda t: "-".join(t) if t else "as it is")
def test_products_in_types_of_the_library(types: tuple[str, str, str], cpu: object, gpu: object) -> None:
    x, y, t = types
    body = f"x = {x}[4,8] parameter(0); y = {y}[8,2] parameter(1); ROOT r = {t}[4,2] dot(x, y), {DOT}"
    for wanted, target, one_type in ((cpu, "x86-64-v3", True), (gpu, "sm_90", False)):
        module = module_of(body)
        before = module.clone()
        assert run("operand-upcaster", module, target, one_type=one_type) == (wanted is not None)
        (product,) = [i for i in module.instructions() if i.opcode == "dot"]
        if wanted is not None:
            operands = {o.shape.element_type.name for o in product.operands}
            assert (*operands, product.shape.element_type.name) == wanted
        inputs = inputs_of(before, special=False)
        assert difference(Evaluator(before).run(*inputs), Evaluator(module).run(*inputs)) is None
