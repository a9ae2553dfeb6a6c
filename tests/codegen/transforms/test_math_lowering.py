"""lower-math-cpu, lower-math-gpu and expand-float-ops."""

from __future__ import annotations

import pytest
from xdsl.dialects import arith, func, llvm, math

from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.llvm import inline
from heron.codegen.transforms import expand_float_ops, lower_math_cpu, lower_math_gpu
from heron.codegen.transforms.lib.math_names import FUNCTIONS
from heron.codegen.transforms.options import TransformOptions


def kernel(body: str, type_: str):
    head = f"func.func @f(%a: {type_}, %b: {type_}) -> {type_}"
    return parse_kernel(f"builtin.module {{ {head} {{\n{body}\nfunc.return %r : {type_} }} }}")


def ops(module) -> list[str]:
    found = []
    for op in module.walk():
        if isinstance(op, func.CallOp):
            found.append(f"call {op.callee.root_reference.data}")
        elif not isinstance(op, (func.FuncOp, func.ReturnOp)) and op.name != "builtin.module":
            found.append(op.name)
    return found


@pytest.mark.parametrize("op", [op.name for op in FUNCTIONS])
@pytest.mark.parametrize("type_", ["f32", "f64"])
def test_every_function_is_in_the_library(op: str, type_: str) -> None:
    binary = op in (math.PowFOp.name, math.Atan2Op.name, llvm.FRemOp.name)
    module = kernel(f"%r = {op} %a{', %b' if binary else ''} : {type_}", type_)
    lower_math_cpu.run(module)
    module.verify()
    (call,) = ops(module)
    if (op, type_) == (llvm.FRemOp.name, "f64"):
        assert call == op  # LLVM calls the C library
        return
    assert call.startswith("call heron.") and inline.has(call.removeprefix("call "))


@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("f32", ["call __nv_tanhf"]),
        ("f64", ["call __nv_tanh"]),
        ("bf16", ["arith.extf", "call __nv_tanhf", "arith.truncf"]),
        ("f16", ["arith.extf", "call __nv_tanhf", "arith.truncf"]),
    ],
)
def test_gpu_names(type_: str, expected: list[str]) -> None:
    module = kernel(f"%r = math.tanh %a : {type_}", type_)
    lower_math_gpu.run(module)
    module.verify()
    assert ops(module) == expected


@pytest.mark.parametrize(("type_", "function"), [("f32", "__nv_fmodf"), ("f64", "__nv_fmod")])
def test_remainders_of_gpus_are_exact(type_: str, function: str) -> None:
    module = kernel(f"%r = llvm.frem %a, %b : {type_}", type_)
    lower_math_gpu.run(module)
    assert ops(module) == [f"call {function}"]


@pytest.mark.parametrize(
    ("divisor", "function"),
    [
        ("5.0", "fmod_near"),
        ("-1.0e+30", "fmod_near"),
        ("2.384185791015625e-07", "fmod_near"),
        ("2.0e-07", "fmod"),
        ("0.0", "fmod"),
    ],
)
def test_remainders_by_constants_have_few_steps(divisor: str, function: str) -> None:
    module = kernel(f"%c = arith.constant {divisor} : f32\n%r = llvm.frem %a, %c : f32", "f32")
    lower_math_cpu.run(module)
    assert ops(module)[-1] == f"call heron.{function}.f32"


@pytest.mark.parametrize(
    ("divisor", "ours"),
    [("6.25", True), ("-1023.0", True), ("2.5e-07", True), ("1.0e-07", False), ("1025.0", False), ("4.0", False)],
)
def test_remainders_of_f64_by_constants_of_usual_sizes_are_ours(divisor: str, ours: bool) -> None:
    """Those by a power of two LLVM writes as three instructions, others are the C library's."""
    module = kernel(f"%c = arith.constant {divisor} : f64\n%r = llvm.frem %a, %c : f64", "f64")
    lower_math_cpu.run(module)
    assert ops(module)[-1] == ("call heron.fmod_near.f64" if ours else "llvm.frem")


def test_instructions_stay() -> None:
    module = kernel("%s = math.sqrt %a : f32\n%r = math.fma %s, %a, %b : f32", "f32")
    lower_math_cpu.run(module)
    assert ops(module) == ["math.sqrt", "math.fma"]


def test_functions_inside_regions() -> None:
    body = """
      %c = arith.cmpf olt, %a, %b : f32
      %r = scf.if %c -> (f32) {
        %x = math.exp %a : f32
        scf.yield %x : f32
      } else {
        scf.yield %b : f32
      }
    """
    module = kernel(body, "f32")
    lower_math_cpu.run(module)
    assert "call heron.exp.f32" in ops(module)


@pytest.mark.parametrize(("target", "expanded"), [("cpu", True), ("gpu", False), ("sim", False)])
def test_bf16_arithmetic(target: str, expanded: bool) -> None:
    module = kernel("%r = arith.addf %a, %b : bf16", "bf16")
    expand_float_ops.run(module, TransformOptions(target=target))  # type: ignore[arg-type]
    module.verify()
    wide = ["arith.extf", "arith.extf", "arith.addf", "arith.truncf"]
    assert ops(module) == (wide if expanded else ["arith.addf"])


def test_f8_is_expanded_everywhere() -> None:
    module = kernel("%r = arith.negf %a : f8E4M3FN", "f8E4M3FN")
    expand_float_ops.run(module, TransformOptions(target="gpu"))
    assert ops(module) == ["arith.extf", "arith.negf", "arith.truncf"]


def test_wide_integers_round_once() -> None:
    module = kernel("%i = arith.fptosi %a : bf16 to i64\n%r = arith.sitofp %i : i64 to bf16", "bf16")
    expand_float_ops.run(module)
    module.verify()
    converted = [op for op in module.walk() if isinstance(op, arith.SIToFPOp)]
    assert str(converted[0].results[0].type) == "f64"
