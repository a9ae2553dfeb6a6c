"""What a GPU cannot launch is refused with numbers before code is made; what kernels really use stays within it."""

from __future__ import annotations

import dataclasses

import pytest

import heron
from heron import targets
from heron.backends import compile
from heron.backends.compiler import Compilation
from heron.backends.gpu import limits
from heron.codegen.llvm.assemble import knows
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


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"grid": (1, 65535, 65535)}, "64 blocks along x, at most 1"),
        ({"block": (64, 1024, 64)}, "256 threads of a block along x, at most 64"),
        ({"threads_per_block": 128}, "256 threads a block, at most 128"),
    ],
)
def test_launches_beyond_the_machine(limit: dict[str, object], why: str) -> None:
    small = dataclasses.replace(SM_90, name="little", **limit)  # type: ignore[arg-type]
    with pytest.raises(HeronError) as caught:
        compile(heron.parse(TRANSPOSE), small)
    assert caught.value.code == "TGT006" and why in str(caught.value)
    assert "exponential" in str(caught.value) and "little" in str(caught.value)


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
