"""The PTX of whole programs is real machine code's source: an assembler takes every kernel, and no kernel spills."""

from __future__ import annotations

import re

import pytest

import heron
from heron.codegen.llvm.assemble import assemble
from heron.codegen.llvm.tools import find_nvjitlink, find_ptxas
from tests.support import program

PROGRAMS = [
    ("transformer_block", False),
    ("gelu_bf16", False),
    ("softmax", False),
    ("heat_while", True),
    ("mandelbrot", True),
    ("cond_switch", True),
    ("embedding_grad", True),
    ("adam_200", True),
]
#: what a kernel gets without asking for more
_SHARED_LIMIT = 48 * 1024

pytestmark = pytest.mark.skipif(
    find_nvjitlink() is None and find_ptxas() is None, reason="neither nvJitLink nor ptxas is here"
)


@pytest.mark.parametrize(("name", "small"), PROGRAMS, ids=[n for n, _ in PROGRAMS])
def test_assembler_takes_every_kernel(name: str, small: bool) -> None:
    ptx = heron.compile(heron.parse(program(name, small).read_text()), "sm_90").stage("ptx")
    entries = re.findall(r"^\.visible \.entry (\w+)", ptx, re.MULTILINE)
    assert entries
    cubin = assemble(ptx, "sm_90")
    assert cubin.code.startswith(b"\x7fELF")
    assert set(entries) <= set(cubin.resources)
    for kernel in entries:
        used = cubin.resources[kernel]
        assert used.shared_bytes <= _SHARED_LIMIT, f"{kernel} takes {used.shared_bytes} bytes of shared memory"
        assert not used.spill_stores and not used.spill_loads, f"{kernel} spills: {used}"


def _row_sums(arrays: int) -> str:
    parameters = [f"  p{n} = f32[64,768] parameter({n})" for n in range(arrays)]
    sums = [f"  s{n} = f32[64,768] add({'p0' if n == 1 else f's{n - 1}'}, p{n})" for n in range(1, arrays)]
    lines = "\n".join([*parameters, *sums])
    return f"""HloModule sums

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY main {{
{lines}
  zero = f32[] constant(0)
  ROOT r = f32[64] reduce({f"s{arrays - 1}" if arrays > 1 else "p0"}, zero), dimensions={{1}}, to_apply=add
}}
"""


@pytest.mark.parametrize(("arrays", "unrolled"), [(1, True), (3, True), (4, False), (12, False)])
def test_loops_with_enough_under_way_are_not_unrolled(arrays: int, unrolled: bool) -> None:
    """A row of 768 is six 128-bit loads a thread and array; ptxas would keep all of them in registers at once."""
    executable = heron.compile(heron.parse(_row_sums(arrays)), "sm_90")
    ptx = executable.stage("ptx")
    (used,) = assemble(ptx, "sm_90").resources.values()
    assert ('.pragma "nounroll"' not in ptx) == unrolled
    assert used.registers <= 96 and not used.spill_bytes
    assert "unroll" not in heron.compile(heron.parse(_row_sums(arrays)), "cpu").stage("llvm")
