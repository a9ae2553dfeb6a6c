"""xDSL to LLVM text: what is translated runs and computes what the ops say."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

import heron
from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.llvm.jit import Jit, host
from heron.codegen.llvm.translate import KernelAbi, to_llvm
from heron.codegen.transforms import expand_float_ops, lower_math_cpu
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from tests.backends.agree import assert_agrees

JIT = Jit(level=1)
_names = iter(range(10_000))
CTYPES = {
    "i1": ctypes.c_bool, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
    "index": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip


def function(body: str, arguments: dict[str, str], result: str, extra: str = ""):
    """A Python callable of `func.func @f(arguments) -> result { body }`."""
    name = f"f{next(_names)}"
    formal = ", ".join(f"%{n}: {t}" for n, t in arguments.items())
    module = parse_kernel(f"builtin.module {{ {extra}\nfunc.func @{name}({formal}) -> {result} {{\n{body}\n}} }}")
    lower_math_cpu.run(module)
    expand_float_ops.run(module)
    module.verify()
    code = JIT.add(to_llvm(module), name)
    return ctypes.CFUNCTYPE(CTYPES[result], *(CTYPES[t] for t in arguments.values()))(code.addresses[name])


@pytest.mark.parametrize(
    ("op", "type_", "a", "b", "expected"),
    [
        ("arith.addi", "i8", 127, 1, -128),
        ("arith.divsi", "i32", -7, 2, -3),
        ("arith.divui", "i8", -1, 2, 127),
        ("arith.remsi", "i32", -7, 3, -1),
        ("arith.floordivsi", "i32", -7, 2, -4),
        ("arith.floordivsi", "i32", 7, -2, -4),
        ("arith.floordivsi", "i32", 6, 2, 3),
        ("arith.ceildivsi", "i32", 7, 2, 4),
        ("arith.ceildivsi", "i32", -7, 2, -3),
        ("arith.ceildivui", "i32", 7, 2, 4),
        ("arith.shrsi", "i32", -8, 1, -4),
        ("arith.shrui", "i32", -8, 1, 2147483644),
        ("arith.minui", "i8", -1, 3, 3),
        ("arith.maxsi", "i8", -1, 3, 3),
        ("math.ipowi", "i32", 3, 5, 243),
        ("arith.divf", "f32", 1.0, 4.0, 0.25),
        ("arith.maxnumf", "f32", float("nan"), 1.0, 1.0),
        ("arith.minimumf", "f64", -0.0, 0.0, -0.0),
        ("math.copysign", "f64", 3.0, -1.0, -3.0),
        ("math.powf", "f64", 2.0, 10.0, 1024.0),
    ],
)
def test_binary(op: str, type_: str, a: float, b: float, expected: float) -> None:
    f = function(f"%c = {op} %a, %b : {type_}\nfunc.return %c : {type_}", {"a": type_, "b": type_}, type_)
    got = f(a, b)
    assert got == expected and np.signbit(got) == np.signbit(expected)


def test_maximum_keeps_nan() -> None:
    f = function("%c = arith.maximumf %a, %b : f32\nfunc.return %c : f32", {"a": "f32", "b": "f32"}, "f32")
    assert np.isnan(f(float("nan"), 1.0)) and f(2.0, 1.0) == 2.0


@pytest.mark.parametrize(
    ("body", "source", "target", "value", "expected"),
    [
        ("%r = arith.extsi %x : i8 to i32", "i8", "i32", -3, -3),
        ("%r = arith.extui %x : i8 to i32", "i8", "i32", -3, 253),
        ("%r = arith.trunci %x : i32 to i8", "i32", "i8", 300, 44),
        ("%r = arith.sitofp %x : i32 to f32", "i32", "f32", -3, -3.0),
        ("%r = arith.uitofp %x : i8 to f32", "i8", "f32", -1, 255.0),
        ("%r = arith.fptosi %x : f32 to i32", "f32", "i32", -3.9, -3),
        ("%r = arith.index_cast %x : i32 to index", "i32", "index", -5, -5),
        ("%r = arith.bitcast %x : f32 to i32", "f32", "i32", 1.0, 0x3F800000),
        ("%r = math.ctlz %x : i32", "i32", "i32", 1, 31),
        ("%r = math.ctpop %x : i32", "i32", "i32", 255, 8),
        ("%r = math.absi %x : i32", "i32", "i32", -4, 4),
        ("%r = math.floor %x : f32", "f32", "f32", -1.5, -2.0),
        ("%r = math.roundeven %x : f64", "f64", "f64", 2.5, 2.0),
        ("%r = math.round %x : f64", "f64", "f64", 2.5, 3.0),
        ("%r = math.rsqrt %x : f32", "f32", "f32", 4.0, 0.5),
        ("%h = arith.truncf %x : f32 to bf16\n%r = arith.extf %h : bf16 to f32", "f32", "f32", 1.00390625, 1.0),
        ("%h = arith.truncf %x : f32 to f16\n%r = arith.extf %h : f16 to f32", "f32", "f32", 1.0005, 1.0009765625),
        ("%h = arith.truncf %x : f32 to f8E4M3FN\n%r = arith.extf %h : f8E4M3FN to f32", "f32", "f32", 17.0, 16.0),
        (
            "%h = arith.truncf %x : f32 to bf16\n%s = arith.addf %h, %h : bf16\n%r = arith.extf %s : bf16 to f32",
            "f32", "f32", 3.0, 6.0,
        ),
        (
            "%h = arith.truncf %x : f32 to f8E5M2\n%c = arith.constant 2.0 : f8E5M2\n"
            "%s = arith.mulf %h, %c : f8E5M2\n%r = arith.extf %s : f8E5M2 to f32",
            "f32", "f32", 3.0, 6.0,
        ),
    ],
)  # fmt: skip
def test_unary(body: str, source: str, target: str, value: float, expected: float) -> None:
    f = function(f"{body}\nfunc.return %r : {target}", {"x": source}, target)
    assert f(value) == expected


def test_bf16_select_needs_no_library_routine() -> None:
    body = """
      %h = arith.truncf %x : f32 to bf16
      %c = arith.constant 2.0 : bf16
      %n = arith.negf %h : bf16
      %p = arith.cmpf ogt, %h, %c : bf16
      %s = arith.select %p, %n, %c : bf16
      %r = arith.extf %s : bf16 to f32
      func.return %r : f32
    """
    f = function(body, {"x": "f32"}, "f32")
    assert (f(3.0), f(1.0)) == (-3.0, 2.0)


def test_for_if_and_carried_values() -> None:
    body = """
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %two = arith.constant 2 : index
      %s:2 = scf.for %i = %zero to %n step %one iter_args(%odd = %zero, %even = %zero) -> (index, index) {
        %m = arith.remsi %i, %two : index
        %c = arith.cmpi eq, %m, %zero : index
        %p:2 = scf.if %c -> (index, index) {
          %e = arith.addi %even, %i : index
          scf.yield %odd, %e : index, index
        } else {
          %o = arith.addi %odd, %i : index
          scf.yield %o, %even : index, index
        }
        scf.yield %p#0, %p#1 : index, index
      }
      %r = arith.subi %s#1, %s#0 : index
      func.return %r : index
    """
    f = function(body, {"n": "index"}, "index")
    assert [f(n) for n in (0, 1, 5, 10)] == [sum(i if i % 2 == 0 else -i for i in range(n)) for n in (0, 1, 5, 10)]


def test_while() -> None:
    body = """
      %one = arith.constant 1 : i32
      %two = arith.constant 2 : i32
      %three = arith.constant 3 : i32
      %zero = arith.constant 0 : i32
      %r:2 = scf.while (%x = %n, %k = %zero) : (i32, i32) -> (i32, i32) {
        %c = arith.cmpi ne, %x, %one : i32
        scf.condition(%c) %x, %k : i32, i32
      } do {
      ^bb0(%x: i32, %k: i32):
        %odd = arith.andi %x, %one : i32
        %is = arith.cmpi eq, %odd, %one : i32
        %t = arith.muli %x, %three : i32
        %t1 = arith.addi %t, %one : i32
        %h = arith.divui %x, %two : i32
        %y = arith.select %is, %t1, %h : i32
        %k1 = arith.addi %k, %one : i32
        scf.yield %y, %k1 : i32, i32
      }
      func.return %r#1 : i32
    """
    assert function(body, {"n": "i32"}, "i32")(27) == 111  # Collatz


def test_switch_and_calls_with_several_results() -> None:
    extra = """
      func.func private @minmax(%a: i32, %b: i32) -> (i32, i32) {
        %lo = arith.minsi %a, %b : i32
        %hi = arith.maxsi %a, %b : i32
        func.return %lo, %hi : i32, i32
      }
    """
    body = """
      %m:2 = func.call @minmax(%a, %b) : (i32, i32) -> (i32, i32)
      %r = scf.index_switch %k -> i32
      case 1 {
        scf.yield %m#0 : i32
      }
      case 2 {
        scf.yield %m#1 : i32
      }
      default {
        %d = arith.addi %m#0, %m#1 : i32
        scf.yield %d : i32
      }
      func.return %r : i32
    """
    f = function(body, {"a": "i32", "b": "i32", "k": "index"}, "i32", extra)
    assert [f(5, 3, k) for k in (0, 1, 2)] == [8, 3, 5]


def test_extended_multiplication() -> None:
    body = "%l, %h = arith.mului_extended %a, %b : i32\nfunc.return %h : i32"
    assert function(body, {"a": "i32", "b": "i32"}, "i32")(-1, -1) == -2


KERNEL = """
builtin.module {
  func.func @k(%in: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64, llvm.readonly},
               %out: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 64 : i64},
               %lo: index, %hi: index) {
    %one = arith.constant 1 : index
    scf.for %i = %lo to %hi step %one {
      %j = arith.index_cast %i : index to i64
      %p = llvm.getelementptr inbounds %in[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %x = llvm.load %p : !llvm.ptr -> f32
      %y = math.tanh %x : f32
      %q = llvm.getelementptr inbounds %out[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      llvm.store %y, %q : f32, !llvm.ptr
    } {heron.unroll = 2 : i64}
    func.return
  }
}
"""


def test_cpu_kernel_text_and_values() -> None:
    module = parse_kernel(KERNEL)
    lower_math_cpu.run(module)
    text = to_llvm(module, kernels={"k": KernelAbi("cpu")})
    assert "ptr noalias align 16 readonly %v1" in text
    assert "dereferenceable(64)" in text
    assert '!"llvm.loop.unroll.count", i32 2' in text
    assert "define internal float @heron.tanh.f32" in text
    assert text.count("define internal") == 1
    code = Jit(level=3).add(text, "k")
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    y = np.zeros_like(x)
    types = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2
    ctypes.CFUNCTYPE(None, *types)(code.addresses["k"])(x.ctypes.data, y.ctypes.data, 10, 990)
    assert np.allclose(y[10:990], np.tanh(x[10:990]), rtol=1e-6) and not y[:10].any() and not y[990:].any()


def test_bytes_of_pred_and_int4() -> None:
    module = parse_kernel(
        """builtin.module { func.func @b(%p: !llvm.ptr, %q: !llvm.ptr) {
             %x = llvm.load %p : !llvm.ptr -> i1
             %t = arith.constant true
             %y = arith.xori %x, %t : i1
             llvm.store %y, %q : i1, !llvm.ptr
             %c1 = arith.constant 1 : i64
             %p1 = llvm.getelementptr %p[%c1] : (!llvm.ptr, i64) -> !llvm.ptr, i4
             %q1 = llvm.getelementptr %q[%c1] : (!llvm.ptr, i64) -> !llvm.ptr, i4
             %n = llvm.load %p1 : !llvm.ptr -> i4
             %m = arith.addi %n, %n : i4
             llvm.store %m, %q1 : i4, !llvm.ptr
             func.return } }"""
    )
    address = JIT.add(to_llvm(module), "b").addresses["b"]
    source, target = np.array([1, 0xFD], np.uint8), np.full(2, 77, np.uint8)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)(source.ctypes.data, target.ctypes.data)
    assert target.tolist() == [0, 0xA]


def test_gpu_ids_know_the_launch() -> None:
    module = parse_kernel(
        """builtin.module { func.func @g(%p: !llvm.ptr) {
             %t = "gpu.thread_id"() {dimension = #gpu<dim x>} : () -> index
             %u = "gpu.thread_id"() {dimension = #gpu<dim y>} : () -> index
             %n = "gpu.block_dim"() {dimension = #gpu<dim x>} : () -> index
             %s = arith.addi %t, %n : index
             %r = arith.addi %s, %u : index
             %i = arith.index_cast %r : index to i64
             llvm.store %i, %p : i64, !llvm.ptr
             func.return } }"""
    )
    text = to_llvm(module, kernels={"g": KernelAbi("gpu", block=(128, 1, 1), grid=(4, 1, 1))})
    assert "define ptx_kernel void @g" in text and '"nvvm.reqntid"="128,1,1"' in text
    assert "call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()" in text
    assert "tid.y" not in text and "ntid" not in text.replace("reqntid", "")


def test_fastmath_flags_are_printed() -> None:
    module = parse_kernel(
        "builtin.module { func.func @f(%a: f32) -> f32 {\n"
        "%b = arith.addf %a, %a fastmath<reassoc,contract> : f32\nfunc.return %b : f32 } }"
    )
    assert "fadd contract reassoc float" in to_llvm(module)


def test_errors() -> None:
    module = parse_kernel(
        "builtin.module { func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { func.return %a : tensor<4xf32> } }"
    )
    with pytest.raises(HeronError) as caught:
        to_llvm(module)
    assert caught.value.code == "LLVM001"
    module = parse_kernel(
        "builtin.module { func.func @f(%a: f32) -> f32 {\n%b = math.sin %a : f32\nfunc.return %b : f32 } }"
    )
    with pytest.raises(HeronError, match="math.sin") as caught:
        to_llvm(module)
    assert caught.value.code == "LLVM002"
    with pytest.raises(HeronError) as caught:
        to_llvm(module, kernels={"nope": KernelAbi()})
    assert caught.value.code == "LLVM003"


COUNTED = """
builtin.module {
  func.func @k(%x: !llvm.ptr, %n: i64) -> f32 {
    %zero = arith.constant 0.0 : f32
    %lo = arith.constant 0 : i64
    %hi = arith.constant 1000 : i64
    %one = arith.constant 1 : i64
    %sum = scf.for %i = %lo to %hi step %one iter_args(%a = %zero) -> (f32) : i64 {
      %p = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %e = math.exp %v : f32
      %b = arith.addf %a, %e fastmath<reassoc> : f32
      scf.yield %b : f32
    }
    %most = scf.for %i = %lo to %n step %one iter_args(%a = %sum) -> (f32) : i64 {
      %p = llvm.getelementptr inbounds %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %v = llvm.load %p : !llvm.ptr -> f32
      %b = arith.maximumf %a, %v : f32
      scf.yield %b : f32
    }
    func.return %most : f32
  }
}
"""


def test_loops_that_surely_run_have_their_test_at_the_end() -> None:
    module = parse_kernel(COUNTED)
    lower_math_cpu.run(module)
    text = to_llvm(module)
    first, _, second = text.partition("!llvm.loop")
    assert "head" not in first and "head" in second  # how often the second runs is not known
    assert text.count('!"llvm.loop.interleave.count", i32 2') == 1  # of the loop with the exponential
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    call = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64)
    code = Jit(level=3).add(text, "k")
    k = call(code.addresses["k"])
    assert abs(k(x.ctypes.data, 0) / np.exp(x).sum() - 1) < 1e-5
    large = np.full(1000, 5e3, np.float32)
    assert k(large.ctypes.data, 1) == np.inf


SHORT = """HloModule short

ENTRY e {{
  x = f32[{n},{k}] parameter(0)
  a = f32[{n},{n},{k}] broadcast(x), dimensions={{1,2}}
  b = f32[{n},{n},{k}] broadcast(x), dimensions={{0,2}}
  d = f32[{n},{n},{k}] subtract(a, b)
  ROOT r = f32[{n},{n},{k}] {op}
}}
"""


def short(n: int, k: int, op: str) -> Module:
    return heron.parse(SHORT.format(n=n, k=k, op=op))


def loops(exe: Any) -> int:
    """The number of loops of the one kernel, by where they end."""
    (kernel,) = re.findall(r"define [^\n]*@(?!heron)[^\n]*noalias[^\n]*\{.*?\n\}", exe.stage("llvm"), re.DOTALL)
    return kernel.count("br i1 ")


#: tests/codegen/transforms/test_join_rows.py has those of other machines
stays_apart = pytest.mark.skipif(host().width < 512, reason="a machine without masks joins such rows")


@pytest.mark.parametrize(
    "op", [*(pytest.param(op, marks=stays_apart) for op in ("tanh(d)", "divide(d, b)")), "remainder(d, b)"]
)
@pytest.mark.parametrize("k", [2, 3, 4])
def test_loops_of_few_steps_are_written_out(k: int, op: str) -> None:
    """So that the loop around one becomes vectors: LLVM's vectoriser looks at innermost loops alone."""
    exe = assert_agrees(short(37, k, op), "cpu")
    assert loops(exe) == 2
    if k == 2 and op != "remainder(d, b)":
        assert "subps" in exe.stage("asm")  # of vectors; of numbers: subss


@stays_apart
@pytest.mark.parametrize(("k", "vectors"), [(2, 2), (3, 1), (4, 1)])
def test_copies_of_a_function_take_one_vector_at_a_time(k: int, vectors: int) -> None:
    text = compile(short(300, k, "tanh(d)"), "cpu").stage("llvm")
    assert re.findall(r'interleave.count", i32 (\d)', text) == [str(vectors)]


@pytest.mark.parametrize(("k", "left"), [pytest.param(5, 2, marks=stays_apart), (8, 3)])
def test_loops_with_functions_are_written_out_as_long_as_they_are_little_code(k: int, left: int) -> None:
    assert loops(assert_agrees(short(37, k, "tanh(d)"), "cpu")) == left


@pytest.mark.parametrize(
    ("n", "k", "op"), [pytest.param(37, 5, "divide(d, b)", marks=stays_apart), (7, 2, "tanh(d)"), (11, 3, "tanh(d)")]
)
def test_other_loops_stay(n: int, k: int, op: str) -> None:
    assert loops(assert_agrees(short(n, k, op), "cpu")) == 3


@stays_apart
def test_long_bodies_are_not_written_out() -> None:
    """Of a loop with 25 powers, four copies are too much code."""
    powers = "".join(f"  p{m} = f32[64,64,4] power(p{m - 1}, b)\n" for m in range(1, 26))
    text = SHORT.format(n=64, k=4, op="negate(p25)").replace("  ROOT", f"  p0 = f32[64,64,4] abs(d)\n{powers}  ROOT")
    assert loops(compile(heron.parse(text), "cpu")) == 3


BORDER = """HloModule border

add {
  x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y)
}

ENTRY e {
  a = f32[100,4] parameter(0)
  b = f32[100,4] parameter(1)
  m = f32[100,4] parameter(2)
  low = f32[] constant(-1e9)
  i = f32[99,4] slice(a), slice={[0:99], [0:4]}
  p = f32[100,4] pad(i, low), padding=1_0x0_0
  pb = f32[100,4] add(p, b)
  r0 = f32[1,100,4] reshape(pb)
  r1 = f32[1,100,4] reshape(a)
  r2 = f32[1,100,4] reshape(p)
  c = f32[3,100,4] concatenate(r0, r1, r2), dimensions={0}
  ms = f32[3,100,4] broadcast(m), dimensions={1,2}
  d = f32[3,100,4] subtract(c, ms)
  x = f32[3,100,4] exponential(d)
  zero = f32[] constant(0)
  ROOT r = f32[100,4] reduce(x, zero), dimensions={0}, to_apply=add
}
"""


def test_a_test_of_the_loop_around_does_not_keep_it_from_vectors() -> None:
    """Whether a row is the first is the same for all of it. LLVM would make two loops along a row of that."""
    exe = assert_agrees(heron.parse(BORDER), "cpu")
    kernel = exe.stage("asm").partition("input_reduce_fusion:")[2].partition("func_end")[0]
    called = re.findall(r"heron\.exp\.f32\.far(\.v\d+)?(?:@PLT)?$", kernel, re.MULTILINE)
    assert any(called)
    assert host().width < 512 or all(called)  # without masks, elements left over from vectors are single


FAR_BORDER = """HloModule far_border

ENTRY e {
  x = f32[32,32,3] parameter(0)
  w = f32[31,32] parameter(1)
  u = f32[31,32,3] slice(x), slice={[1:32], [0:32], [0:3]}
  v = f32[31,32,3] slice(x), slice={[0:31], [0:32], [0:3]}
  d = f32[31,32,3] subtract(u, v)
  ws = f32[31,32,3] broadcast(w), dimensions={0,1}
  f = f32[31,32,3] multiply(d, ws)
  zero = f32[] constant(0)
  a = f32[32,32,3] pad(f, zero), padding=0_1x0_0x0_0
  b = f32[32,32,3] pad(f, zero), padding=1_0x0_0x0_0
  xa = f32[32,32,3] add(x, a)
  ROOT r = f32[32,32,3] subtract(xa, b)
}
"""


def test_tests_of_loops_further_out_are_left_to_llvm() -> None:
    """It moves them out of both loops as long as these are short."""
    exe = assert_agrees(heron.parse(FAR_BORDER), "cpu")
    assert loops(exe) == 3
    assert exe.stage("llvm").count("llvm.loop.unroll.full") == 1


CROSS = """HloModule m
ENTRY e {
  x = f32[LEAD37,1] parameter(0)
  y = f32[LEAD37,1] parameter(1)
  z = f32[LEAD37,1] parameter(2)
  a = f32[LEAD37,1] multiply(y, z)
  b = f32[LEAD37,1] subtract(z, x)
  c = f32[LEAD37,1] divide(x, y)
  v = f32[LEAD37,3] concatenate(a, b, c), dimensions={AXIS}
  w = f32[LEAD37,3] parameter(3)
  m = f32[LEAD37,3] multiply(v, w)
  zero = f32[] constant(0)
  ROOT r = f32[PADDED,3] pad(m, zero), padding=PADDING
}"""


@pytest.mark.parametrize(
    ("lead", "axis", "padded", "padding"),
    [("", "1", "40", "1_2x0_0"), ("9,", "2", "9,40", "0_0x1_2x0_0"), ("9,", "2", "12,37", "1_2x0_0x0_0")],
)
def test_loops_with_tests_of_their_steps_are_written_out_in_the_text(
    lead: str, axis: str, padded: str, padding: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """LLVM takes such a test for an end of the loop, and warns that it could not write it out."""
    text = CROSS.replace("LEAD", lead).replace("AXIS", axis).replace("PADDED", padded).replace("PADDING", padding)
    exe = assert_agrees(heron.parse(text), "cpu")
    assert "llvm.loop.unroll.full" not in exe.stage("llvm")
    assert "not unrolled" not in capfd.readouterr().err


def test_complex_sums_become_vectors() -> None:
    """LLVM has no vectors of pairs: a loop carries the parts."""
    text = """HloModule m

add {
  x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT s = c64[] add(x, y)
}

ENTRY e {
  x = f32[400,4] parameter(0)
  y = f32[400,4] parameter(1)
  c = c64[400,4] complex(x, y)
  t = c64[400,4] multiply(c, c)
  zero = c64[] constant((0, 0))
  ROOT r = c64[4] reduce(t, zero), dimensions={0}, to_apply=add
}
"""
    exe = assert_agrees(heron.parse(text), "cpu")
    kernel = exe.stage("llvm").partition("@input_reduce_fusion(")[2].partition("\n}")[0]
    assert "phi { float, float }" not in kernel and "fadd reassoc float" in kernel
    asm = exe.stage("asm").partition("input_reduce_fusion:")[2].partition("func_end")[0]
    assert asm.count("addps") + asm.count("fadd") > asm.count("addss")
