"""The program's own LLVM module, which many write into: products, routines, transforms, kernels, calls, copies.

Whatever stands beside whatever in one program, nothing is declared twice, and the values are right.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import heron
from heron import Options
from heron.backends.compiler import Compilation
from heron.backends.cpu.machine import CpuMachine
from heron.codegen.llvm.declarations import Declarations
from heron.codegen.llvm.optimize import binding
from heron.codegen.native import float_gemm, pool_code
from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.ir.types import F32
from heron.hlo.text import parse
from heron.passes.framework.checks import difference, random_inputs
from heron.targets import get as target
from heron.trace import Trace

pytestmark = [
    pytest.mark.skipif(float_gemm.form(F32) is None, reason="products here are a library's"),
    pytest.mark.skipif(not pool_code.supported(), reason="the pool needs Linux on x86-64 or AArch64"),
]

COMPUTATIONS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = pred[] compare(a, b), direction=LT }
"""
#: what each writer of the program's text writes: parameters, and instructions of which the last is the result. N stands
#: for the part's name
PARTS = {
    "rows": (
        ["f32[1500,32]", "f32[32,512]"],
        "N.d = f32[1500,512] dot(N.0, N.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "N.t = f32[1500,512] tanh(N.d)  N = f32[1500,512] multiply(N.t, N.d)",
    ),
    "product": (
        ["f32[96,96]", "f32[96,96]"],
        "N = f32[96,96] dot(N.0, N.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "blas": (
        ["c64[3,300]", "c64[300,300]"],
        "N = c64[3,300] dot(N.0, N.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "integers": (
        ["s8[64,64]", "s8[64,64]"],
        "N = s32[64,64] dot(N.0, N.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "lapack": (
        ["f32[4,12,12]", "f32[4,12,3]"],
        "N.i = s32[12,12] iota(), iota_dimension=0  N.j = s32[12,12] iota(), iota_dimension=1\n"
        "N.e = pred[12,12] compare(N.i, N.j), direction=EQ  N.c = f32[12,12] convert(N.e)\n"
        "N.k = f32[] constant(12)  N.b = f32[12,12] broadcast(N.k), dimensions={}  N.m = f32[12,12] multiply(N.c, N.b)\n"
        "N.l = f32[4,12,12] broadcast(N.m), dimensions={1,2}  N.a = f32[4,12,12] add(N.0, N.l)\n"
        "N = f32[4,12,3] triangular-solve(N.a, N.1), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    ),
    "transform": (["c64[8,64]"], "N = c64[8,64] fft(N.0), fft_type=FFT, fft_length={64}"),
    "sort": (["f32[40,50]"], "N = f32[40,50] sort(N.0), dimensions={1}, to_apply=less"),
    "convolution": (
        ["f32[2,16,16,8]", "f32[3,3,8,16]"],
        "N = f32[2,16,16,16] convolution(N.0, N.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
    ),
    "strided": (
        ["f64[2,5,16,8]", "f64[3,3,8,6]"],
        "N = f64[2,3,14,6] convolution(N.0, N.1), window={size=3x3}, dim_labels=b01f_01io->b01f",
    ),
    "kernel": (
        ["u64[300000]", "u64[300000]"],
        "N.m = u64[300000] minimum(N.0, N.1)  N.x = u64[300000] maximum(N.m, N.0)\n"
        "N.c = f32[300000] convert(N.x)  N = f32[300000] exponential(N.c)",
    ),
    "copies": (["f32[6000,100]"], "N.c = f32[6000,100] copy(N.0)  N = f32[6000,100] copy(N.c)"),
    "random": ([], "N = u64[2] rng-get-and-update-state(), delta=3"),
    "host": (  # its scratch memory is more than a stack has
        ["f32[400,400]"],
        'N.s = (f32[400,400], f32[400], s32[]) custom-call(N.0), custom_call_target="lapack_ssyevd_ffi", '
        "operand_layout_constraints={f32[400,400]{0,1}}, api_version=API_VERSION_TYPED_FFI, "
        "backend_config=\"{mode = 86 : ui8, uplo = 76 : ui8}\"\n"
        "N = f32[400] get-tuple-element(N.s), index=1",
    ),
}  # fmt: skip


def module_of(*names: str) -> heron.Module:
    """A program of those parts side by side."""
    lines, results, count = [], [], 0
    for name in names:
        given, text = PARTS[name]
        for n, shape in enumerate(given):
            lines.append(f"{name}.{n} = {shape} parameter({count})")
            count += 1
        lines.append(re.sub(r"\bN\b", name, text))
        results.append(name)
    shapes = re.findall(r"^(?:.*  )?(\w+) = (\S+) ", "\n".join(lines), re.M)
    of = {name: shape for name, shape in shapes if name in results}
    lines.append(f"ROOT all = ({', '.join(of[r] for r in results)}) tuple({', '.join(results)})")
    return parse("HloModule m\n" + COMPUTATIONS + "ENTRY e {\n" + "\n".join(lines) + "\n}\n")


def own_text(*names: str) -> str:
    """The LLVM text of the program's own module."""
    compilation = Compilation(module_of(*names), target("cpu"), Options(threads=2), Trace())
    machine = compilation.machine
    assert isinstance(machine, CpuMachine)
    return machine.modules(compilation.lowered, "")[-1][1]


def test_each_part_is_written_by_its_own() -> None:
    """The parts are what they are meant to be: text that only one of them has."""
    marks = {
        "rows": "heron_row_blocks", "product": "@heron_product_", "blas": "@heron_cgemm", "integers": "@heron_gemm_s8",
        "lapack": "heron_lapack_", "transform": "heron_fft", "convolution": "tile", "strided": "tile",
        "random": "@heron_random", "host": "@heron_host_", "copies": "heron_copy", "kernel": "@heron_parallel_for",
    }  # fmt: skip
    missing = {name: mark for name, mark in marks.items() if mark not in own_text(name)}
    assert not missing


@pytest.mark.parametrize("first", PARTS)
def test_pairs(first: str) -> None:
    """LLVM reads the module of any two parts."""
    for second in list(PARTS)[list(PARTS).index(first) + 1 :]:
        binding().parse_assembly(own_text(first, second)).verify()


def test_all_together() -> None:
    module = module_of(*PARTS)
    inputs = [np.tril(x) if x.shape == (4, 12, 12) else x for x in random_inputs(module, 1)]
    found = compile(module, "cpu", options=Options(threads=2)).run(inputs)
    for name, ours, theirs in zip(PARTS, found, evaluate(module, *inputs), strict=True):
        assert difference(theirs, ours) is None, name


def test_a_name_has_one_signature() -> None:
    declared = Declarations()
    for _ in range(2):
        declared.function("void @f(ptr, i64)")
        declared.function("i64 @llvm.umin.i64(i64, i64)")
        assert declared.variable("@g = external global i8") == "@g"
    assert declared.text() == "declare void @f(ptr, i64)\n@g = external global i8\n"
    for other in ("void @f(ptr)", "i64 @g(ptr)"):
        with pytest.raises(HeronError) as error:
            declared.function(other)
        assert error.value.code == "LLVM028"


def test_nothing_else_writes_declarations() -> None:
    """LLVM's word stands in no other text that heron writes."""
    heron_ = Path(heron.__file__).parent
    written = re.compile(r"""(^|["'\n{])declare [<{\w]+[ \w{}<>]* @|["']declare |^declare .*\(""", re.M)
    found = [str(path.relative_to(heron_)) for path in heron_.rglob("*.py") if written.search(path.read_text())]
    assert found == ["codegen/llvm/declarations.py"]
