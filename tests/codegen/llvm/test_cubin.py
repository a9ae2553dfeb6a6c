"""Cubins: what kernels use, machine code as a file and as text, and what is said where NVIDIA's tools are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import heron
from heron.codegen.llvm import disassemble, tools
from heron.codegen.llvm.assemble import knows
from heron.codegen.llvm.cubin import code_sizes, read_resources
from heron.compiling import compile
from heron.errors import HeronError
from heron.trace import Trace
from tests.support import heron as run

SUM = """HloModule sums

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[64,1024] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[64] reduce(x, zero), dimensions={1}, to_apply=add
}
"""
PTXAS = """ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 26 registers, used 2 barriers, 4220 bytes smem
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""

needs_assembler = pytest.mark.skipif(
    tools.find_nvjitlink() is None and tools.find_ptxas() is None, reason="neither nvJitLink nor ptxas is here"
)
needs_disassembler = pytest.mark.skipif(tools.find_nvdisasm() is None, reason="nvdisasm is not here")


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    path = tmp_path / "sums.hlo"
    path.write_text(SUM)
    return path


def test_resources_of_the_log() -> None:
    used = read_resources(PTXAS)
    assert used["k"].to_json() == {
        "registers": 26, "shared_bytes": 4220, "stack_bytes": 16, "spill_stores": 8, "spill_loads": 4, "barriers": 2,
        "code_bytes": 0,
    }  # fmt: skip
    assert used["k"].spill_bytes == 12
    assert (used["plain"].registers, used["plain"].spill_bytes, used["plain"].barriers) == (8, 0, 0)


def test_code_sizes_of_what_is_no_elf_file() -> None:
    assert code_sizes(b"") == code_sizes(b"\x7fELF") == code_sizes(b"x" * 100) == {}


@needs_assembler
def test_summary_tells_what_kernels_use(sums: Path) -> None:
    told = json.loads(run("compile", sums, "--target", "sm_90", "--json").out)
    (kernel,) = told["kernels"]
    used = kernel["resources"]
    assert 8 <= used["registers"] <= 64 and used["barriers"] == 1
    assert used["shared_bytes"] == 32  # partial sums of 4 warps for 2 rows
    assert used["spill_stores"] == used["spill_loads"] == used["stack_bytes"] == 0
    assert kernel["code_size"] == used["code_bytes"] > 256
    text = run("compile", sums, "--target", "sm_90").out
    assert "registers" in text and "spills" in text and "assembly" in text
    assert "registers" not in run("compile", sums).out  # a CPU has no such figures


def test_summary_without_an_assembler(sums: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "find_nvjitlink", lambda: None)
    monkeypatch.setattr(tools, "find_ptxas", lambda: None)
    result = run("compile", sums, "--target", "sm_90")
    assert result.code == 0 and "not known: no assembler" in result.out


@needs_assembler
def test_summary_of_an_assembler_that_tells_nothing(sums: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heron.codegen.llvm.cubin.read_resources", lambda log: {})
    result = run("compile", sums, "--target", "sm_90")
    assert result.code == 0 and "does not tell them" in result.out


@needs_assembler
def test_summary_for_a_gpu_the_assembler_does_not_know(sums: Path) -> None:
    result = run("compile", sums, "--target", "sm_70")
    assert result.code == 0 and knows("sm_70") == ("makes no code for sm_70" not in result.out)


@needs_assembler
def test_cubin_to_a_file(sums: Path, tmp_path: Path) -> None:
    out = tmp_path / "sums.cubin"
    assert run("compile", sums, "--target", "sm_90", "--to", "cubin", "-o", out).code == 0
    assert len(code_sizes(out.read_bytes())) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--target", "sm_90"], "CLI034"),
        (["-o", "x.cubin"], "TGT003"),
        (["--target", "sim:sm_90", "-o", "x"], "TGT003"),
    ],
)
def test_cubins_that_cannot_be(sums: Path, arguments: list[str], code: str) -> None:
    result = run("compile", sums, "--to", "cubin", *arguments)
    assert result.code == 2 and code in result.err


def test_a_program_without_kernels_has_no_cubin(tmp_path: Path) -> None:
    same = tmp_path / "same.hlo"
    same.write_text("HloModule same\n\nENTRY e {\n  ROOT x = f32[4] parameter(0)\n}\n")
    result = run("compile", same, "--target", "sm_90", "--to", "cubin", "-o", tmp_path / "x.cubin")
    assert result.code == 2 and "TGT005" in result.err
    assert run("compile", same, "--target", "sm_90", "--to", "sass").code == 0
    assert run("compile", same, "--target", "sm_90").code == 0


@needs_assembler
@needs_disassembler
def test_sass(sums: Path) -> None:
    sass = run("compile", sums, "--target", "sm_90", "--to", "sass").out
    lines = disassemble.instructions(sass)
    assert any(line.startswith("LDG.E.128") for line in lines)  # a row is read in vectors
    assert any(line.startswith("SHFL.DOWN") for line in lines) and any("BAR.SYNC" in line for line in lines)


@needs_disassembler
def test_sass_of_what_is_no_cubin() -> None:
    with pytest.raises(HeronError) as caught:
        disassemble.to_sass(b"nonsense")
    assert caught.value.code == "LLVM027"


def test_missing_disassembler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassemble, "find_nvdisasm", lambda: None)
    with pytest.raises(HeronError, match="nvidia-cuda-nvdisasm") as caught:
        disassemble.to_sass(b"")
    assert caught.value.code == "LLVM026"


@needs_assembler
def test_resources_survive_saving(tmp_path: Path) -> None:
    executable = compile(heron.parse(SUM), "sm_90")
    executable.examine()
    executable.trace.save(tmp_path / "x.trace")
    (kept,), (kernel,) = Trace.load(tmp_path / "x.trace").kernels, executable.trace.kernels
    assert kept.resources == kernel.resources and kept.resources["registers"] > 0
