"""Kernels that call the inline library compute what those with copies of it do, to the bit, and as fast: in vectors."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import numpy as np
import pytest

import heron
from heron import archive
from heron.backends.cpu import machine, quick_code
from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.inline import called
from heron.codegen.llvm.inline.builder import REGISTRY
from heron.codegen.llvm.inline.lanes import on_lanes
from heron.codegen.llvm.jit import Jit, host
from heron.passes.fusion.model import anew
from tests.codegen.llvm import loops
from tests.codegen.llvm.test_inline_accuracy import samples

RANGED = [n for n, d in REGISTRY.items() if d.usual is not None]
SEVERAL = ["heron.exp.f32", "heron.pow.f32", "heron.atan2.f64", "heron.fmod.f32", "heron.cbrt.f64", *RANGED]


@pytest.mark.parametrize("name", SEVERAL)
def test_the_same_bits(name: str) -> None:
    """On whole vectors, on half ones and on what is left over; of usual numbers, and with rare ones among them."""
    dtype, count = (np.float32 if name.endswith("f32") else np.float64), len(REGISTRY[name].arguments)
    calls = called.Calls(host().width, names={name})
    declared = Declarations()
    calls.declare(declared)
    copied = loops.loop_text(name, "f")
    text = copied[: copied.index("define internal")].replace(f"@{name}(", f"@{called.symbol(name)}(") + declared.text()
    jit = Jit()
    vectors = [n for n in (512, 256, 128) if n <= host().width][0] // np.dtype(dtype).itemsize // 8
    assert f"{called.symbol(name)}.v{vectors}(" in jit.optimized(text).partition("declare")[0]
    address = jit.add(text, "f", others=[called.compiled(name, host().width, jit)]).addresses["f"]
    arrays = [np.ascontiguousarray(samples(dtype, -9, 9, n)[:4099]) for n in range(count)]
    if REGISTRY[name].usual is not None:
        arrays[0][:2000] = np.clip(arrays[0][:2000], -9, 9)
        arrays[0][2000::11] *= dtype(1e30)
        arrays[1:] = [np.full_like(arrays[0], 11.75)] * (count - 1)
    out = np.empty_like(arrays[0])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64)(address)
    run(*(a.ctypes.data for a in (*arrays, out)), out.size)
    np.testing.assert_array_equal(out, loops.run(name, *arrays))


@pytest.mark.parametrize("name", RANGED)
def test_one_number_has_the_bits_of_many(name: str) -> None:
    """The form on one number branches to shorter code for usual arguments; also where their range ends."""
    dtype, end = (np.float32 if name.endswith("f32") else np.float64), REGISTRY[name].usual
    assert end is not None
    edges = [end, np.nextafter(dtype(end), dtype(0)), np.nextafter(dtype(end), dtype(np.inf)), np.inf, np.nan, 0, 1e-40]
    x = np.concatenate([samples(dtype, -9, 9, 0)[:2000], samples(dtype, -end, end, 1)[:2000], edges]).astype(dtype)
    x = np.concatenate([x, -x])
    jit, symbol = Jit(), called.symbol(name)
    one = jit.link(called.compiled(name, host().width, jit), [symbol]).addresses[symbol]
    kind = ctypes.c_float if dtype is np.float32 else ctypes.c_double
    more = [11.75] * (len(REGISTRY[name].arguments) - 1)
    run = ctypes.CFUNCTYPE(kind, *[kind] * (1 + len(more)))(one)
    wanted = loops.run(name, x, *(np.full_like(x, v) for v in more))
    np.testing.assert_array_equal(np.array([run(v, *more) for v in x], dtype), wanted)


def test_every_function_is_straight_code_on_vectors() -> None:
    """No loop over lanes is left. The form on one number may branch: machines without masks have a branch for a choice."""
    for name in ("heron.exp.f32", "heron.tanh.f64", "heron.log.f32"):
        assembly = called.compiler(name, Jit()).asm(called.text(name, host().width))
        forms = re.split(r"^(heron\S+):$", assembly, flags=re.M)
        vectors = [code for label, code in zip(forms[1::2], forms[2::2], strict=True) if re.search(r"\.v\d+$", label)]
        assert len(vectors) == 2
        assert not any(re.search(r"^\s(j|loop|b\.)", code, re.M) for code in vectors), name


@pytest.mark.parametrize("width", [128, 256])
def test_llvm_tells_the_user_nothing(width: int, capfd: pytest.CaptureFixture[str]) -> None:
    """It does where it was asked for vectors and made none."""
    called.compiler("heron.sin.f64", Jit()).asm(called.text("heron.sin.f64", width))
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", [name for name in REGISTRY if called.can_be_called(name)])
def test_vectors_are_written_where_no_table_is_read(name: str) -> None:
    """LLVM's loop vectoriser takes half of the time of a function's module."""
    text = called.text(name, 512)
    assert ("phi" in text) == ("@heron.table" in text) != called.compiler(name, Jit()).shaped


@pytest.mark.parametrize(
    ("line", "wide"),
    [
        ("%t1 = fmul float %a0, 0xC000000000000000", "%t1 = fmul <4 x float> %a0, splat (float 0xC000000000000000)"),
        ("%t2 = fcmp olt double 0x3FF0000000000000, %x1", "%t2 = fcmp olt <4 x double> splat (double 0x3FF0000000000000), %x1"),
        ("%t3 = bitcast float %t1 to i32", "%t3 = bitcast <4 x float> %t1 to <4 x i32>"),
        ("%t4 = xor i1 %t2, true", "%t4 = xor <4 x i1> %t2, splat (i1 true)"),
        ("%t5 = select i1 %t4, i64 -54, i64 0", "%t5 = select <4 x i1> %t4, <4 x i64> splat (i64 -54), <4 x i64> splat (i64 0)"),
        ("%t6 = call float @llvm.fabs.f32(float %a0)", "%t6 = call <4 x float> @llvm.fabs.v4f32(<4 x float> %a0)"),
        ("ret double %t9", "ret <4 x double> %t9"),
    ],
)  # fmt: skip
def test_instructions_on_lanes(line: str, wide: str) -> None:
    assert on_lanes(line, 4) == wide


TOWER = """HloModule m
ENTRY e {{
  x0 = f32[{n}] parameter(0)
{lines}
}}"""


def tower(n: int, height: int, op: str = "sine") -> str:
    lines = [f"  {'ROOT ' if k == height else ''}x{k} = f32[{n}] {op}(x{k - 1})" for k in range(1, height + 1)]
    return TOWER.format(n=n, lines="\n".join(lines))


def llvm(program: str) -> str:
    return heron.compile(heron.parse(program)).stage("llvm")


def test_copies_have_a_budget() -> None:
    """A kernel of much work has copies of a few functions and calls many."""
    few, many = llvm(tower(1 << 20, 2, "tanh")), llvm(tower(1 << 20, 12, "tanh"))
    assert "heron.tanh.f32.far" not in few
    assert many.count("call float @heron.tanh.f32.far(") == 12
    assert many.count("define internal float @heron.tanh.f32(") == 1  # in the function's own module


def test_a_function_with_much_code_for_rare_numbers_is_called() -> None:
    """A copy has no branch: it would do for each number what only a very large one needs."""
    assert called.is_mostly_rare("heron.sin.f32") and called.is_mostly_rare("heron.fmod_near.f64")
    assert not called.is_mostly_rare("heron.exp.f32")
    assert "call float @heron.sin.f32.far(" in llvm(tower(1 << 20, 1))


def test_a_kernel_of_little_work_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    small = tower(50, 1, "tanh")
    assert "call float @heron.tanh.f32.far(" in llvm(small)
    x = np.linspace(-7, 7, 50, dtype=np.float32)
    calling = heron.compile(small)(x)
    monkeypatch.setattr(machine, "_LITTLE", 0.0)
    assert "heron.tanh.f32.far" not in llvm(small)
    np.testing.assert_array_equal(heron.compile(small)(x), calling)


def test_a_saved_program_has_what_it_calls(tmp_path: Path) -> None:
    program = heron.compile(heron.parse(tower(1000, 8)))
    x = np.linspace(-7, 7, 1000, dtype=np.float32)
    archive.save(program, tmp_path / "tower.heron")
    np.testing.assert_array_equal(archive.load(tmp_path / "tower.heron")(x), program(x))


COLUMN = """HloModule m
ENTRY e {{
  x = f32[{rows},3] parameter(0)
  column = f32[{rows},1] slice(x), slice={{[0:{rows}], [1:2]}}
  line = f32[{rows}] reshape(column)
  ROOT y = f32[{rows}] tanh(line)
}}"""


ROWS = """HloModule m
add {{ a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }}
ENTRY e {{
  x = {type}[40,{width}] parameter(0)
  part = {type}[40,{read}] slice(x), slice={{[0:40], [0:{width}:{stride}]}}
  wide = f32[40,{read}] convert(part)
  y = f32[40,{read}] tanh(wide)
  zero = f32[] constant(0)
  ROOT sums = f32[40] reduce(y, zero), dimensions={{1}}, to_apply=add
}}"""


def rows(read: int, t: str = "f32", stride: int = 1) -> str:
    """Sums over rows of `read` elements, of which the array has more between them."""
    return ROWS.format(type=t, width=read * stride, read=read, stride=stride)


@pytest.mark.parametrize(
    "text", [tower(4, 1), tower(41, 1), COLUMN.format(rows=16), rows(23)], ids=["few", "odd", "column", "rows"]
)
@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_a_short_loop_calls_for_vectors_only(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for what is left over from whole vectors, and for the last elements of a column."""
    monkeypatch.setattr(quick_code, "_EACH", 0.0)  # what runs once and is tiny has no vectors
    assembly = heron.compile(heron.parse(text)).stage("asm")
    assert set(re.findall(r"call\w*\s+heron\.\w+\.f32\.far(\.v)?", assembly)) == {".v"}


@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_sums_have_masks_where_they_are_worth_it() -> None:
    """Not for few steps left over, not in long loops, and not where a mask would part the reads of a vector."""
    masked = [rows(23), rows(63), rows(110), rows(23, "bf16"), rows(23, stride=2)]
    plain = [rows(32), rows(17), rows(250), rows(23, "bf16", 2)]
    assert all("vectorize.predicate" in llvm(text) for text in masked)
    assert not any("vectorize.predicate" in llvm(text) for text in plain)


POINTS = """HloModule m
ENTRY e {{
  x = {t}[2000,{n},3] parameter(0)
  y = {t}[2000,3] parameter(1)
  e = {t}[2000,{n},3] exponential(x)
  b = {t}[2000,{n},3] broadcast(y), dimensions={{0,2}}
  m = {t}[2000,{n},3] multiply(e, b)
  s = {t}[2000,{n},1] slice(m), slice={{[0:2000], [0:{n}], [1:2]}}
  r = {t}[2000,{n}] reshape(s)
  ROOT o = {t}[2000,{n}{wanted}
}}"""
#: exponentials of one coordinate of each point, and of all three in a row
READ_APART, WRITTEN_APART = "] negate(r)", ",3] negate(m)"


@pytest.mark.parametrize("wanted", [READ_APART, WRITTEN_APART], ids=["read", "written"])
@pytest.mark.parametrize("n", [33, 48])
@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_loops_over_narrow_numbers_that_lie_apart_have_vectors_without_masks(n: int, wanted: str) -> None:
    """With masks each number would have a test of its own."""
    for t in ("bf16", "f16"):
        text = POINTS.format(t=t, n=n, wanted=wanted)
        assert "vectorize.predicate" not in llvm(text) and 'vectorize.width", i32 1}' not in llvm(text)
        assert "zmm" in str(heron.compile(heron.parse(text), "x86-64-v4").stage("asm"))


@pytest.mark.skipif(host().width < 512, reason="the machine has no masks")
def test_bytes_of_short_rows_lie_side_by_side() -> None:
    """A loop along each row is written out, so that the bytes of a step and of the next one follow each other."""
    text = llvm("""HloModule m
ENTRY e {
  x = f32[500,2] parameter(0)
  a = f32[500,500,2] broadcast(x), dimensions={0,2}
  b = f32[500,500,2] broadcast(x), dimensions={1,2}
  d = f32[500,500,2] subtract(a, b)
  r = f32[500,500,2] sine(d)
  p = pred[500,500,2] compare(r, d), direction=LT
  ROOT o = (pred[500,500,2], f32[500,500,2]) tuple(p, r)
}""")
    assert "vectorize.predicate" in text and 'vectorize.width", i32 1}' not in text


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 41, 127, 128, 130, 1023, 1025])
def test_short_loops_have_the_bits_of_long_ones(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_code, "_EACH", 0.0)
    x = np.linspace(-7, 7, 3 * 3000, dtype=np.float32).reshape(3000, 3)
    every = heron.compile(heron.parse(COLUMN.format(rows=3000)))(x)
    np.testing.assert_array_equal(heron.compile(heron.parse(COLUMN.format(rows=rows)))(x[:rows]), every[:rows])


WINDOWS = """HloModule m
ENTRY e {
  x = f32[8,8,1,1] parameter(0)
  k = f32[7,1,1,1] parameter(1)
  w = f32[1,7,1,1] parameter(2)
  y = f32[8,8,1,1] convolution(x, k), window={size=7x1 pad=3_3x0_0}, dim_labels=01bf_01io->01bf
  ROOT z = f32[8,8,1,1] convolution(y, w), window={size=1x7 pad=0_0x3_3}, dim_labels=01bf_01io->01bf
}"""


def test_a_kernel_of_next_to_no_work_calls_its_own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The inner window at each place of the outer one: seven copies would be code for nothing."""
    monkeypatch.setattr(quick_code, "_EACH", 0.0)  # the optimiser is at it
    monkeypatch.setattr(anew, "_OF_TINY", 0.0)  # both windows in one kernel
    apart = re.compile(r"= call float @\w+\(.*\) noinline$", re.M)
    x, k = np.linspace(-3, 3, 64, dtype=np.float32), np.linspace(0, 1, 7, dtype=np.float32)
    arguments = x.reshape(8, 8, 1, 1), k.reshape(7, 1, 1, 1), k.reshape(1, 7, 1, 1)
    assert len(apart.findall(llvm(WINDOWS))) >= 3
    calling = heron.compile(heron.parse(WINDOWS))(*arguments)
    monkeypatch.setattr(machine, "_RARE", 0.0)
    assert not apart.findall(llvm(WINDOWS))
    np.testing.assert_array_equal(heron.compile(heron.parse(WINDOWS))(*arguments), calling)


ROUNDS = """HloModule m
ENTRY e {
  x = f32[40] parameter(0)
  a = f8e4m3fn[40] convert(x)
  b = f32[40] convert(a)
  c = f32[40] multiply(b, x)
  d = f8e4m3fn[40] convert(c)
  f = f32[40] convert(d)
  g = f32[40] multiply(f, x)
  h = f8e4m3fn[40] convert(g)
  i = f32[40] convert(h)
  j = f32[40] multiply(i, x)
  k = f8e4m3fn[40] convert(j)
  ROOT l = f32[40] convert(k)
}"""


def test_a_kernel_of_next_to_no_work_has_two_copies_of_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = re.compile(r"call i8 @heron\.convert\.f32\.f8e4m3fn\(.*\)$", re.M)
    x = np.linspace(-3, 3, 40, dtype=np.float32)
    assert len(copied.findall(llvm(ROUNDS))) == 2
    calling = heron.compile(heron.parse(ROUNDS))(x)
    monkeypatch.setattr(machine, "_RARE", 0.0)
    assert len(copied.findall(llvm(ROUNDS))) == 4
    np.testing.assert_array_equal(heron.compile(heron.parse(ROUNDS))(x), calling)
