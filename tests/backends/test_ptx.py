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
