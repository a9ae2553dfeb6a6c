"""The PTX of whole programs is real machine code's source: an assembler takes every kernel, and no kernel spills."""

from __future__ import annotations

import re

import pytest

import heron
from benchmarks import ptx_text
from heron import targets
from heron.codegen.llvm.assemble import assemble, knows
from heron.codegen.llvm.tools import find_nvjitlink, find_ptxas
from heron.compiling import compile
from heron.runtime.executable import Executable
from tests.support import NAMES, program

#: the two train steps have kernels of every kind, and one is enough; `python -m benchmarks.kernels --ptxas` does all
SMALL = [name for name in NAMES if name != "gpt2_12l_train_step"]
FULL = ["transformer_block", "gelu_bf16", "softmax", "transpose_chain", "reductions", "attention_bf16_grad"]
#: programs that need no kernel of heron's own: a library's products, or block kernels alone
LIBRARY_OR_BLOCKS = ("attention_bf16_grad", "attention_f32", "matmul_f32", "matmul_bf16_gelu", "seed_int8xbf16")
#: what a kernel gets without asking for more
_SHARED_LIMIT = 48 * 1024

pytestmark = pytest.mark.skipif(
    find_nvjitlink() is None and find_ptxas() is None, reason="neither nvJitLink nor ptxas is here"
)


@pytest.mark.parametrize(("name", "small"), [*((n, True) for n in SMALL), *((n, False) for n in FULL)])
def test_assembler_takes_every_kernel(name: str, small: bool) -> None:
    executable = compile(heron.parse(program(name, small, "cuda").read_text()), "sm_90")
    ptx = executable.ptx  # type: ignore[attr-defined]
    entries = re.findall(r"^\.visible \.entry (\w+)", ptx, re.MULTILINE)
    assert len(entries) == _own_kernels(executable)
    if not entries:
        assert name in LIBRARY_OR_BLOCKS
        return
    cubin = assemble(ptx, "sm_90")
    assert cubin.code.startswith(b"\x7fELF")
    assert set(entries) <= set(cubin.resources)
    for kernel in entries:
        used = cubin.resources[kernel]
        assert used.shared_bytes <= _SHARED_LIMIT, f"{kernel} takes {used.shared_bytes} bytes of shared memory"
        assert used.registers <= 168, f"{kernel} uses {used.registers} registers"
        assert not used.spill_stores and not used.spill_loads, f"{kernel} spills: {used}"


@pytest.mark.parametrize("name", ["dtype_zoo", "transformer_block"])
@pytest.mark.parametrize("target", [t.name for t in targets.all_targets() if t.machine == t.name and t.kind == "gpu"])
def test_every_target(target: str, name: str) -> None:
    """Types an architecture lacks are computed otherwise; what the assembler does not know goes as far as PTX."""
    executable = compile(heron.parse(program(name, True, "cuda").read_text()), target)
    ptx = executable.ptx  # type: ignore[attr-defined]
    assert f".target {target}" in ptx
    if knows(target):
        assert len(assemble(ptx, target).resources) == _own_kernels(executable)


def _own_kernels(executable: Executable) -> int:
    """How many kernels are not code of Triton's."""
    return len([k for k in executable.kernels if k.emitter != "block"])


def _row_sums(arrays: int, rows: int) -> str:
    parameters = [f"  p{n} = f32[{rows},768] parameter({n})" for n in range(arrays)]
    sums = [f"  s{n} = f32[{rows},768] add({'p0' if n == 1 else f's{n - 1}'}, p{n})" for n in range(1, arrays)]
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
  ROOT r = f32[{rows}] reduce({f"s{arrays - 1}" if arrays > 1 else "p0"}, zero), dimensions={{1}}, to_apply=add
}}
"""


@pytest.mark.parametrize(
    ("rows", "arrays", "unrolled"),
    [
        (1 << 16, 1, True),
        (1 << 16, 3, True),
        (1 << 16, 4, False),
        (1 << 16, 12, False),
        (64, 4, True),
        (64, 12, True),
    ],
)
def test_loads_take_half_of_the_registers_that_a_launch_leaves(rows: int, arrays: int, unrolled: bool) -> None:
    """A row of 768 is six 128-bit loads a thread and array; many rows fill the machine, few leave it empty."""
    executable = heron.compile(heron.parse(_row_sums(arrays, rows)), "sm_90")
    text = executable.stage("llvm")
    assert ("llvm.loop.unroll.disable" not in text) == unrolled
    (used,) = assemble(executable.stage("ptx"), "sm_90").resources.values()
    assert used.registers <= (96 if rows > 64 else 160) and not used.spill_bytes
    assert "unroll" not in heron.compile(heron.parse(_row_sums(arrays, rows)), "cpu").stage("llvm")


def test_heavy_elementwise_work_is_not_written_out_for_each_lane() -> None:
    """Of light work a thread does four elements in a row; of heavy work the code would be four times as long."""
    names = "exponential sine cosine log tanh sqrt exponential sine cosine log tanh sine".split()
    heavy = [f"  v{n} = f32[4096,4096] {op}({f'v{n - 1}' if n else 'p'})" for n, op in enumerate(names)]
    light = "  ROOT r = f32[4096,4096] negate(p)"
    texts = {"light": light, "heavy": "\n".join([*heavy, "  ROOT r = f32[4096,4096] negate(v11)"])}
    widest, length = {}, {}
    for kind, body in texts.items():
        module = heron.parse(f"HloModule m\n\nENTRY e {{\n  p = f32[4096,4096] parameter(0)\n{body}\n}}\n")
        ptx = compile(module, "sm_90").ptx  # type: ignore[attr-defined]
        (code,) = ptx_text.kernels(ptx).values()
        widest[kind], length[kind] = max(code.accesses), code.count
    assert widest["light"] == 128
    assert length["heavy"] < 1500
