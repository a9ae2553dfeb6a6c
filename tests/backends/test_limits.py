"""What a GPU cannot launch is refused with numbers before code is made; what kernels really use stays within it."""

from __future__ import annotations

import dataclasses

import pytest

import heron
from heron import targets
from heron.backends.compiler import Compilation
from heron.backends.gpu import limits
from heron.codegen.llvm.assemble import knows
from heron.compiling import compile
from heron.errors import HeronError
from heron.options import Options
from heron.trace import Trace
from tests.support import program

TRANSPOSE = """HloModule transposes

ENTRY main {
  x = f32[64,1024] parameter(0)
  e = f32[64,1024] exponential(x)
  t = f32[1024,64] transpose(e), dimensions={1,0}
  ROOT r = f32[1024,64] multiply(t, t)
}
"""
SM_90 = targets.get("sm_90")


def test_launches_beyond_the_machine() -> None:
    """Limits just below what a kernel asks for, whatever the emitter chose; at what it asks for, it compiles."""
    module = heron.parse(TRANSPOSE)
    launch = next(iter(Compilation(module, SM_90, Options(), Trace()).lowered[1].values())).kernel.launch
    blocks, threads = launch.grid[0], launch.block[0]
    assert blocks > 1 and threads > 32
    cases = [
        ({"grid": (blocks - 1, 65535, 65535)}, f"{blocks} blocks along x, at most {blocks - 1}"),
        ({"block": (threads - 1, 1024, 64)}, f"{threads} threads of a block along x, at most {threads - 1}"),
        ({"threads_per_block": threads - 1}, f"{threads} threads a block, at most {threads - 1}"),
    ]
    (use,) = Compilation(module, SM_90, Options(), Trace()).lowered[1].values()
    limits.check(use, dataclasses.replace(SM_90, grid=(blocks, 1, 1), block=(threads, 1, 1), threads_per_block=threads))
    for limit, why in cases:
        with pytest.raises(HeronError) as caught:
            limits.check(use, dataclasses.replace(SM_90, name="little", **limit))  # type: ignore[arg-type]
        assert caught.value.code == "TGT006" and why in str(caught.value)
        assert "exponential" in str(caught.value) and "little" in str(caught.value)


def test_a_compile_is_refused_before_code_is_made() -> None:
    with pytest.raises(HeronError, match="blocks along x.* at most 0"):
        compile(heron.parse(TRANSPOSE), dataclasses.replace(SM_90, name="little", grid=(0, 1, 1)))


def test_more_blocks_than_any_machine_has() -> None:
    shape = f"s8[{1 << 41}]"
    text = f"HloModule m\nENTRY e {{ p = {shape} parameter(0)\n ROOT r = {shape} negate(p) }}\n"
    with pytest.raises(HeronError, match=r"TGT006(.|\n)*4,294,967,296 blocks along x, at most 2,147,483,647"):
        compile(heron.parse(text), SM_90)


def test_shared_memory_beyond_the_machine() -> None:
    _, uses = Compilation(heron.parse(TRANSPOSE), SM_90, Options(), Trace()).lowered
    (use,) = uses.values()
    needed = limits.shared_bytes(use.kernel.module)
    assert needed > 32 * 32 * 4
    limits.check(use, dataclasses.replace(SM_90, static_shared_bytes=needed))
    with pytest.raises(HeronError, match=f"{needed:,} bytes of shared memory, at most {needed - 1:,}") as caught:
        limits.check(use, dataclasses.replace(SM_90, static_shared_bytes=needed - 1))
    assert caught.value.code == "TGT006"


@pytest.mark.skipif(not knows("sm_90"), reason="neither nvJitLink nor ptxas is here")
@pytest.mark.parametrize("name", ["reductions", "sort_topk", "transpose_chain"])
def test_shared_memory_is_what_the_assembler_finds(name: str) -> None:
    module = heron.parse(program(name, small=False, platform="cuda").read_text())
    _, uses = Compilation(module, SM_90, Options(), Trace()).lowered
    told = {kernel: limits.shared_bytes(use.kernel.module) for kernel, use in uses.items()}
    used = {k: r.shared_bytes for k, r in compile(module, SM_90).cubin.resources.items()}  # type: ignore[attr-defined]
    assert any(used.values())
    wrong = {k: (told[k], used[k]) for k in told if abs(used[k] - told[k]) > 16}  # alignment
    assert not wrong
