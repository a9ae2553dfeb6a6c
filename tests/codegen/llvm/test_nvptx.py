"""PTX, libdevice and cubins, on machines with no GPU."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from heron.codegen.llvm import assemble as assembler
from heron.codegen.llvm import libdevice, nvptx
from heron.codegen.llvm.legal import check_optimised
from heron.codegen.llvm.optimize import parse
from heron.errors import HeronError

needs_libdevice = pytest.mark.skipif(
    not any(path.is_file() for path in libdevice.candidates()), reason="libdevice is not installed (nvidia-nvvm)"
)
KERNEL = """
@tile = internal addrspace(3) global [32 x float] undef, align 16
define ptx_kernel void @k(ptr noalias readonly align 16 %a, ptr noalias align 16 %b) nounwind "nvvm.reqntid"="32,1,1" {
  %t = call range(i32 0, 32) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext nneg i32 %t to i64
  %p = getelementptr inbounds float, ptr %a, i64 %i
  %x = load float, ptr %p
  %e = call float @FUNCTION(float %x)
  %s = getelementptr inbounds float, ptr addrspace(3) @tile, i64 %i
  store float %e, ptr addrspace(3) %s
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %r = xor i64 %i, 31
  %u = getelementptr inbounds float, ptr addrspace(3) @tile, i64 %r
  %y = load float, ptr addrspace(3) %u
  %z = call float @llvm.nvvm.shfl.sync.down.f32(i32 -1, float %y, i32 1, i32 31)
  %q = getelementptr inbounds float, ptr %b, i64 %i
  store float %z, ptr %q
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare float @FUNCTION(float)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)
"""


@pytest.fixture
def fresh_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(libdevice, "_memory", {})
    return tmp_path


def test_ptx_of_a_kernel() -> None:
    ptx = nvptx.to_ptx(KERNEL.replace("FUNCTION", "llvm.fabs.f32"), "sm_90")
    for expected in (".target sm_90", ".reqntid 32", "ld.global.nc", "st.shared", "bar", "shfl.sync.down.b32"):
        assert expected in ptx
    assert ".version 7.8" in ptx


@needs_libdevice
def test_libdevice_is_split_and_linked(fresh_cache: Path) -> None:
    text = KERNEL.replace("FUNCTION", "__nv_tanhf")
    ptx = nvptx.to_ptx(text, "sm_80")
    assert "ex2.approx" in ptx and "__nv_" not in ptx.split(".entry")[1]
    assert [p.name for p in fresh_cache.rglob("*.bc")] == ["__nv_tanhf.bc"]
    libdevice._memory.clear()
    assert nvptx.to_ptx(text, "sm_80") == ptx


@needs_libdevice
def test_unwritable_cache_costs_nothing_but_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("HERON_CACHE_DIR", str(blocked))
    monkeypatch.setattr(libdevice, "_memory", {})
    assert "ex2.approx" in nvptx.to_ptx(KERNEL.replace("FUNCTION", "__nv_expf"))


@needs_libdevice
def test_unknown_device_function() -> None:
    with pytest.raises(HeronError) as caught:
        nvptx.to_ptx(KERNEL.replace("FUNCTION", "__nv_nosuchf"))
    assert caught.value.code == "LLVM021"


def test_missing_libdevice_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libdevice, "candidates", lambda: iter(()))
    libdevice.find.cache_clear()
    try:
        with pytest.raises(HeronError, match="nvidia-nvvm") as caught:
            libdevice.find()
    finally:
        libdevice.find.cache_clear()
    assert caught.value.code == "LLVM020"


@pytest.mark.parametrize("name", ["llvm.exp.f32", "llvm.sin.f32", "llvm.tanh.f32", "expf"])
def test_what_would_kill_the_process_is_refused(name: str) -> None:
    with pytest.raises(HeronError) as caught:
        nvptx.to_ptx(KERNEL.replace("FUNCTION", name))
    assert caught.value.code == "LLVM023" and f"@{name}" in str(caught.value)


def test_approximate_maths_is_allowed_where_asked() -> None:
    text = KERNEL.replace("call float @FUNCTION", "call afn float @FUNCTION").replace("FUNCTION", "llvm.tanh.f32")
    assert "tanh.approx" in nvptx.to_ptx(text)


def test_wide_division_is_refused() -> None:
    text = "define i128 @f(i128 %a) {\n  %b = udiv i128 %a, 7\n  ret i128 %b\n}\n"
    with pytest.raises(HeronError, match="wider than 64 bits"):
        nvptx.to_ptx(text)


def test_an_inexact_remainder_is_refused() -> None:
    with pytest.raises(HeronError, match="rounded quotient"):
        nvptx.to_ptx("define float @f(float %a, float %b) {\n  %c = frem float %a, %b\n  ret float %c\n}\n")


def test_unknown_architecture() -> None:
    with pytest.raises(HeronError) as caught:
        nvptx.to_ptx(KERNEL.replace("FUNCTION", "llvm.fabs.f32"), "gfx90a")
    assert caught.value.code == "LLVM022"


@pytest.mark.parametrize("tool", ["nvjitlink", "ptxas"])
def test_cubin(tool: str) -> None:
    found = assembler.find_nvjitlink() if tool == "nvjitlink" else assembler.find_ptxas()
    if found is None or (tool == "ptxas" and not shutil.which(str(found)) and not Path(str(found)).exists()):
        pytest.skip(f"{tool} is not installed")
    ptx = nvptx.to_ptx(KERNEL.replace("FUNCTION", "llvm.fabs.f32"), "sm_90")
    cubin = assembler.assemble(ptx, "sm_90", tool)  # type: ignore[arg-type]
    assert cubin.code[:4] == b"\x7fELF" and cubin.tool == tool
    used = cubin.resources["k"]
    assert used.registers > 0 and used.spill_stores == 0
    if tool == "ptxas":
        assert used.shared_bytes == 128
    with pytest.raises(HeronError) as caught:
        assembler.assemble(ptx + "\nnonsense", "sm_90", tool)  # type: ignore[arg-type]
    assert caught.value.code == "LLVM025"


def test_no_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembler, "find_nvjitlink", lambda: None)
    monkeypatch.setattr(assembler, "find_ptxas", lambda: None)
    with pytest.raises(HeronError, match="nvidia-nvjitlink") as caught:
        assembler.assemble("")
    assert caught.value.code == "LLVM024"


@pytest.mark.parametrize("name", ["llvm.exp.f32", "llvm.sin.f32", "expf", "__truncsfbf2"])
def test_what_the_optimiser_calls_is_refused_too(name: str) -> None:
    module = parse(KERNEL.replace("FUNCTION", name), nvptx.TRIPLE, str(nvptx.machine("sm_90", 3, "").target_data))
    with pytest.raises(HeronError) as caught:
        check_optimised(module)
    assert caught.value.code == "LLVM023" and f"@{name}" in str(caught.value)


def test_what_the_optimiser_may_call() -> None:
    """By name, or as its text says: sin may be called where approximation is allowed."""
    for name in ("llvm.fabs.f32", "llvm.nvvm.ex2.approx.f", "afn llvm.sin.f32"):
        text = KERNEL.replace("float @FUNCTION(float %", "afn float @FUNCTION(float %") if "afn" in name else KERNEL
        text = text.replace("FUNCTION", name.split()[-1]).replace("declare afn", "declare")
        check_optimised(parse(text, nvptx.TRIPLE, str(nvptx.machine("sm_90", 3, "").target_data)))
