"""Ranges hold what values can be, and what simplify-arith does by them changes no value."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import arith

from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.ir.editing import functions
from heron.codegen.llvm.jit import Jit
from heron.codegen.llvm.translate import KernelAbi, to_llvm
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.lib.ranges import Ranges
from heron.codegen.transforms.options import TransformOptions
from tests.codegen.transforms.kernels import apply

#: `x` in [-3, 19] and `y` in [0, 6] by the map's domain
HEAD = """  %x, %y = xla_gpu.apply_indexing "(d0) -> (d0 mod 23 - 3, d0 mod 7), domain: d0 in [0, 99]"(%lo)
"""
OPS = ("addi", "subi", "muli", "minsi", "maxsi", "andi")
DIVISIONS = ("divsi", "remsi", "divui", "remui", "floordivsi")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Lines of arith on `index`, `i32` and `i8`, and the names of values that are of type index."""
    lines = ["%c = arith.index_cast %x : index to i32", "%d = arith.trunci %c : i32 to i8"]
    values = {"index": ["%x", "%y"], "i32": ["%c"], "i8": ["%d"]}
    for n in range(draw(st.integers(1, 14))):
        type_ = draw(st.sampled_from(sorted(values)))
        a, b = (draw(st.sampled_from(values[type_])) for _ in range(2))
        kind = draw(st.integers(0, 5))
        if kind == 0:
            number = draw(st.sampled_from([-128, -3, -1, 0, 1, 2, 3, 7, 8, 15, 127]))
            lines.append(f"%v{n} = arith.constant {number} : {type_}")
        elif kind == 1:  # by a number that is not 0
            op = draw(st.sampled_from(DIVISIONS))
            lines.append(f"%k{n} = arith.constant {draw(st.sampled_from([1, 2, 5, 8, 23, 100]))} : {type_}")
            lines.append(f"%v{n} = arith.{op} {a}, %k{n} : {type_}")
        elif kind == 2:
            lines.append(f"%p{n} = arith.cmpi {draw(st.sampled_from(PREDICATES))}, {a}, {b} : {type_}")
            lines.append(f"%v{n} = arith.select %p{n}, {b}, {a} : {type_}")
        elif kind == 3:
            other = draw(st.sampled_from(sorted(set(values) - {type_})))
            lines.append(f"%v{n} = {_cast(draw, type_, other, a)}")
            type_ = other
        else:
            lines.append(f"%v{n} = arith.{draw(st.sampled_from(OPS))} {a}, {b} : {type_}")
        values[type_].append(f"%v{n}")
    return "\n  ".join(lines), values["index"]


def _cast(draw: st.DrawFn, source: str, target: str, value: str) -> str:
    if "index" in (source, target):
        op = "arith.index_cast"
    elif source == "i32":
        op = "arith.trunci"
    else:
        op = draw(st.sampled_from(["arith.extsi", "arith.extui"]))
    return f"{op} {value} : {source} to {target}"


def kernel(lines: str, results: list[str]) -> str:
    n = len(results)
    stores = []
    for k, value in enumerate(results):
        stores.append(f"%w{k} = arith.index_cast {value} : index to i64\n  %at{k} = arith.constant {k} : index")
        stores.append(f"%o{k + 1} = tensor.insert %w{k} into %o{k}[%at{k}] : tensor<{n}xi64>")
    body = "\n  ".join([lines, *stores])
    return f"""func.func @k(%o0: tensor<{n}xi64>, %lo: index, %hi: index) -> tensor<{n}xi64> attributes {{xla_gpu.entry}} {{
{HEAD}  {body}
  func.return %o{n} : tensor<{n}xi64>
}}"""


@settings(max_examples=25)
@given(programs())
def test_values_lie_in_their_ranges_and_stay(program: tuple[str, list[str]]) -> None:
    lines, results = program
    text = kernel(lines, results)
    ranges = Ranges()
    wanted = []
    (function,) = functions(parse_kernel(text))
    for op in function.body.block.ops:
        if isinstance(op, arith.IndexCastOp) and (op.results[0].name_hint or "").startswith("w"):
            wanted.append(ranges.of(op.operands[0]))
    assert len(wanted) == len(results)
    without = [s for s in pipeline.PIPELINES["cpu"] if s[0] != "simplify-arith"]
    plain, simplified = compiled(text, without), compiled(text, pipeline.PIPELINES["cpu"])
    for at in (0, 1, 25, 99):
        got, want = np.zeros(len(results), np.int64), np.zeros(len(results), np.int64)
        simplified(got.ctypes.data, at, at + 1)
        plain(want.ctypes.data, at, at + 1)
        np.testing.assert_array_equal(got, want)
        for value, (low, high) in zip(want, wanted, strict=True):
            assert low <= value <= high


def compiled(text: str, steps: Sequence[pipeline.Step]) -> Callable[[int, int, int], None]:
    """The kernel after those steps, as a function of its output and the work items to do."""
    llvm = to_llvm(pipeline.run(parse_kernel(text), TransformOptions(), steps), kernels={"k": KernelAbi("cpu")})
    code = Jit(level=0).add(llvm, exports=["k"])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.addresses["k"])
    return lambda *arguments: (function(*arguments), code)[0]  # which keeps the code alive


@pytest.mark.parametrize(
    ("ops", "result"),
    [
        ("%r = arith.minsi %x, %c19 : index", "%x"),
        ("%r = arith.maxsi %c19, %x : index", "%c19"),
        ("%r = arith.andi %y, %c7 : index", "%y"),
        ("%r = arith.remsi %y, %c7 : index", "%y"),
        ("%r = arith.divui %y, %c7 : index", "%c0"),
        ("%r = arith.floordivsi %y, %c1 : index", "%y"),
        ("%p = arith.cmpi slt, %x, %c19 : index\n%r = arith.select %p, %x, %y : index", None),
        ("%p = arith.cmpi sle, %x, %c19 : index\n%r = arith.select %p, %x, %y : index", "%x"),
        ("%p = arith.cmpi uge, %c7, %y : index\n%r = arith.select %p, %x, %y : index", "%x"),
        ("%p = arith.cmpi uge, %c19, %x : index\n%r = arith.select %p, %x, %y : index", None),
        ("%p = arith.cmpi eq, %y, %c7 : index\n%r = arith.select %p, %x, %y : index", "%y"),
        ("%a = arith.addi %x, %y : index\n%p = arith.cmpi sgt, %a, %c25 : index\n"
         "%r = arith.select %p, %x, %y : index", "%y"),
    ],
)  # fmt: skip
def test_what_ranges_decide(ops: str, result: str | None) -> None:
    constants = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 7, 19, 25))
    text = f"func.func @k(%lo: index) -> index {{\n{constants}\n{HEAD}{ops}\nfunc.return %r : index\n}}"
    assert (f"func.return {result} :" in apply(text, "simplify-arith")) == (result is not None)


def test_division_without_signs_is_unsigned() -> None:
    text = f"""func.func @k(%lo: index) -> (index, index) {{
  %c5 = arith.constant 5 : index
{HEAD}  %a = arith.divsi %y, %c5 : index
  %b = arith.divsi %x, %c5 : index
  func.return %a, %b : index, index
}}"""
    done = apply(text, "simplify-arith")
    assert "arith.divui %y" in done and "arith.divsi %x" in done
