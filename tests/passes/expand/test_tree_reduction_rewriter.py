"""tree-reduction-rewriter: what is cut, into how many parts, and that values stay."""

from __future__ import annotations

import numpy as np
import pytest

from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo import text
from heron.hlo.ir.module import Module
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

RNG = np.random.default_rng(5)


def program(shape: str, result: str, dims: str, op: str = "add", init: str = "0", t: str = "f32") -> Module:
    return text.parse(f"""HloModule m
r {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}
ENTRY e {{ x = {t}[{shape}] parameter(0) z = {t}[] constant({init})
  ROOT q = {t}[{result}] reduce(x, z), dimensions={{{dims}}}, to_apply=r }}""")


def rewritten(module: Module, **fields: int) -> list[str]:
    get("tree-reduction-rewriter", **fields).run(module, PassContext())
    return [str(i.shape.bare) for i in module.entry.post_order() if i.opcode == "reduce"]


@pytest.mark.parametrize(
    ("shape", "result", "dims", "steps"),
    [
        ("65536", "", "0", ["f32[64]", "f32[]"]),
        ("40,4096", "", "0,1", ["f32[64]", "f32[]"]),  # the longest dimension
        ("4096,40", "40", "0", ["f32[32,40]", "f32[40]"]),  # two units of columns: half as many parts
        ("4096,320", "320", "0", ["f32[320]"]),  # narrow units enough
        ("7,60000", "7", "1", ["f32[7,8]", "f32[7]"]),
        ("2,20000,3", "2,3", "1", ["f32[2,32,3]", "f32[2,3]"]),
        ("65537", "", "0", ["f32[64]", "f32[]"]),  # no divisor is near: filled up
        ("1000", "", "0", ["f32[]"]),  # too short
        ("64,4096", "64", "1", ["f32[64]"]),  # results enough
    ],
)
@pytest.mark.parametrize(("op", "init"), [("add", "2.5"), ("maximum", "-inf")])
def test_steps(shape: str, result: str, dims: str, steps: list[str], op: str, init: str) -> None:
    module = program(shape, result, dims, op, init)
    x = RNG.integers(-9, 9, [int(n) for n in shape.split(",")]).astype(np.float32)
    (want,) = evaluate(module, x)
    assert rewritten(module, parts=64, least=1024) == steps
    (got,) = evaluate(module, x)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("shape", "result", "dims"),
    [
        ("65537", "", "0"), ("65537,3", "3", "0"), ("65537,3", "", "0,1"), ("3,65537", "3", "1"),
        ("2,65537,2", "2,2", "1"), ("5,40013", "", "0,1"), ("40013,2,3", "2", "0,2"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("op", "init"), [("add", "2.5"), ("maximum", "-inf")])
def test_elements_left_over_join_the_parts(shape: str, result: str, dims: str, op: str, init: str) -> None:
    module = program(shape, result, dims, op, init)
    x = RNG.integers(-9, 9, [int(n) for n in shape.split(",")]).astype(np.float32)
    (want,) = evaluate(module, x)
    assert len(rewritten(module, parts=64, least=1024, pads=False)) > 1
    opcodes = {i.opcode for i in module.entry.post_order()}
    assert "concatenate" in opcodes and "pad" not in opcodes
    np.testing.assert_array_equal(evaluate(module, x)[0], want)


def test_elements_left_over_come_last() -> None:
    """The last element that is not 0, by a function that needs their order."""
    module = text.parse("""HloModule m
r { a = s32[] parameter(0) b = s32[] parameter(1) z = s32[] constant(0)
  t = pred[] compare(b, z), direction=NE ROOT c = s32[] select(t, b, a) }
ENTRY e { x = s32[65537,3] parameter(0) z = s32[] constant(0)
  ROOT q = s32[3] reduce(x, z), dimensions={0}, to_apply=r }""")
    assert len(rewritten(module, parts=64, least=1024, pads=False)) > 1
    for count in (3, 65530):
        x = np.arange(3 * 65537, dtype=np.int32).reshape(-1, 3) * (np.arange(65537) < count)[:, None]
        (got,) = evaluate(module, x)
        assert got.tolist() == [3 * count - 3, 3 * count - 2, 3 * count - 1]


@pytest.mark.parametrize(
    ("shape", "result", "dims", "steps"),
    [
        ("65536,4", "4", "0", ["f32[64,64]", "f32[4]"]),
        ("65537,3", "3", "0", ["f32[32,192]", "f32[3]"]),  # 33 rows of 64 do not go into more; one row is left over
        ("2,20000,3", "2,3", "1", ["f32[2,9,192]", "f32[2,3]"]),
        ("20000,2,3", "2,3", "0", ["f32[19,192]", "f32[2,3]"]),
        ("1000,3", "3", "0", ["f32[3]"]),  # too short
        ("700,9", "9", "0", ["f32[5,9]", "f32[9]"]),  # fewer than 32 times 64 rows
        ("4096,40", "40", "0", ["f32[32,40]", "f32[40]"]),  # wide enough
    ],
)
@pytest.mark.parametrize(("op", "init"), [("add", "2.5"), ("maximum", "-inf")])
def test_narrow_rows_are_folded(shape: str, result: str, dims: str, steps: list[str], op: str, init: str) -> None:
    module = program(shape, result, dims, op, init)
    x = RNG.integers(-9, 9, [int(n) for n in shape.split(",")]).astype(np.float32)
    (want,) = evaluate(module, x)
    assert rewritten(module, parts=64, least=1024, fold=32) == steps
    (got,) = evaluate(module, x)
    np.testing.assert_array_equal(got, want)


def test_only_rows_in_memory_are_folded() -> None:
    """Or those computed element by element of such: others would have to be found by their position in a row."""

    def steps(operand: str) -> list[str]:
        return rewritten(text.parse(OF_OTHERS.format(operand)), parts=64, least=1024, fold=32)

    assert steps("multiply(x, x)") == ["f32[64,64]", "f32[4]"]
    assert steps("maximum(x, zeros)") == ["f32[64,64]", "f32[4]"]
    assert steps("multiply(x, row)") == ["f32[64,4]", "f32[4]"]
    product = "dot(x, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert steps(product) == ["f32[64,4]", "f32[4]"]


OF_OTHERS = """HloModule m
r {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{ x = f32[65536,4] parameter(0) y = f32[4] parameter(1) z = f32[] constant(0)
  k = f32[4,4] broadcast(y), dimensions={{0}}
  row = f32[65536,4] broadcast(y), dimensions={{1}}
  zeros = f32[65536,4] broadcast(z), dimensions={{}}
  p = f32[65536,4] {}
  ROOT q = f32[4] reduce(p, z), dimensions={{0}}, to_apply=r }}"""


@pytest.mark.parametrize("rows", [4096, 4099])
@pytest.mark.parametrize("columns", [2, 5, 9, 31])
@pytest.mark.parametrize(("op", "init", "t"), [("add", "0", "f32"), ("and", "true", "pred"), ("maximum", "-128", "s8")])
def test_folded_rows_on_the_cpu(rows: int, columns: int, op: str, init: str, t: str) -> None:
    module = program(f"{rows},{columns}", f"{columns}", "0", op, init, t)
    dtype = module.entry.parameters[0].shape.element_type.dtype
    x = RNG.integers(-9, 9, (rows, columns)).astype(dtype) if t != "pred" else RNG.random((rows, columns)) > 1e-4
    (want,), (got,) = evaluate(module, x), compile(module, "cpu").run([x])
    np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol=1e-6)


def test_small_floats_stay_f32_between_the_steps() -> None:
    module = program("65536", "", "0", t="bf16")
    assert rewritten(module, parts=64, least=1024) == ["f32[64]", "f32[]"]
    assert str(module.entry.root.shape.bare) == "bf16[]"
    x = np.ones(65536).astype(module.entry.parameters[0].shape.element_type.dtype)
    assert float(evaluate(module, x)[0]) == 65536


@pytest.mark.parametrize("pads", [True, False])
def test_several_arrays(pads: bool) -> None:
    source = """HloModule m
pick { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  more = pred[] compare(b, a), direction=GT same = pred[] compare(b, a), direction=EQ
  first = pred[] compare(j, i), direction=LT tie = pred[] and(same, first) take = pred[] or(more, tie)
  v = f32[] select(take, b, a) k = s32[] select(take, j, i) ROOT t = (f32[], s32[]) tuple(v, k) }
ENTRY e { x = f32[65537] parameter(0) n = s32[65537] iota(), iota_dimension=0
  lowest = f32[] constant(-inf) last = s32[] constant(65537)
  ROOT r = (f32[], s32[]) reduce(x, n, lowest, last), dimensions={0}, to_apply=pick }"""
    module = text.parse(source)
    x = RNG.integers(0, 100, 65537).astype(np.float32)
    rewritten(module, parts=64, least=1024, pads=pads)
    got = evaluate(module, x)
    assert len(module.entry.post_order()) > 5 and [float(v) for v in got] == [x.max(), x.argmax()]


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_a_sum_of_everything_uses_the_whole_machine(target: str) -> None:
    module = program("2097152", "", "0")
    made = compile(module, target)
    first = made.kernels[0]
    assert (first.work_items if target == "cpu" else first.grid[0]) >= 64
    if target == "cpu":
        x = RNG.normal(size=2097152).astype(np.float32)
        np.testing.assert_allclose(made(x), x.astype(np.float64).sum(), atol=1e-2)
