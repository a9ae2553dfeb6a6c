"""Block kernels through Triton, which needs no GPU for that."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import heron
from heron.analysis.blocks.config import BlockConfig
from heron.analysis.fusion.fusion import fusion_of
from heron.backends.gpu.compiled import CompiledGpu
from heron.codegen.triton.compile import compile_block, spelled
from heron.codegen.triton.rows import emitter_of
from heron.codegen.triton.text import to_ttir
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.targets.triton import missing
from tests.codegen.triton.kernels import attention, program

needs_triton = pytest.mark.skipif(bool(missing()), reason=missing() or "Triton is here")

PRODUCT = """
  x = s8[512,1024] parameter(0)
  a = bf16[512,1024] convert(x)
  b = bf16[1024,512] parameter(1)
  d = bf16[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bias = bf16[512] parameter(2)
  bb = bf16[512,512] broadcast(bias), dimensions={1}
  s = bf16[512,512] add(d, bb)
  ROOT t = bf16[512,512] tanh(s)
"""


SMALL = PRODUCT.replace("1024", "160").replace("512", "48")

TEXTS = {
    "descriptors": (SMALL, BlockConfig((32, 32), 32, warps=4, stages=2, tma=True)),
    "bytes": (
        """
        a = s8[48,160] parameter(0)
        b = s8[160,32] parameter(1)
        ROOT d = s32[48,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((16, 32), 64),
    ),
    "floats_of_8_bits": (
        """
        a = f8e4m3fn[48,160] parameter(0)
        b = f8e5m2[160,32] parameter(1)
        ROOT d = f32[48,32] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((16, 32), 128),
    ),
    "nibbles": (
        """
        x = bf16[48,160] parameter(0)
        q = s4[160,32] parameter(1)
        c = bf16[160,32] convert(q)
        ROOT d = f32[48,32] dot(x, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        """,
        BlockConfig((16, 32), 64),
    ),
    "batched_and_transposed": (
        """
        a = bf16[4,160,48] parameter(0)
        b = bf16[4,32,160] parameter(1)
        ROOT d = f32[4,48,32] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={2}
        """,
        BlockConfig((1, 16, 32), 64),
    ),
}


def text_of(body: str, config: BlockConfig) -> str:
    module, _ = emitter_of(fusion_of(parse(program(body)).entry), config, "k").emit()
    return to_ttir(module)


@needs_triton
def test_matrix_units(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Large tiles use the matrix units of a whole warp group, and load ahead."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    config = BlockConfig((128, 128), 64, warps=8, stages=3)
    code = compile_block(text_of(PRODUCT, config), "k", config, "sm_90")
    assert re.search(r"wgmma\.mma_async\.sync\.aligned\.m64n128k16\.f32\.bf16\.bf16", code.ptx)
    assert "cp.async" in code.ptx and ".entry k(" in code.ptx
    assert code.cubin.startswith(b"\x7fELF") and code.warps == 8 and code.shared > 48 << 10


#: what multiplies a tile on other machines, and what does not: sm_100 keeps sums in a memory of its own
BY_MACHINE = {
    "sm_100": (("tcgen05.mma", "tcgen05.ld", "tcgen05.alloc"), ("wgmma", "mma.sync")),
    "sm_120": (("mma.sync.aligned.m16n8k16",), ("wgmma", "tcgen05")),
    "sm_89": (("mma.sync.aligned.m16n8k16",), ("wgmma", "tcgen05")),
}


@needs_triton
@pytest.mark.parametrize("machine", BY_MACHINE)
def test_matrix_units_of_the_machine(machine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """A product that is quickest as a block kernel uses the matrix units that its machine has."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    body = """
      x = bf16[2048,1024] parameter(0)
      w = bf16[1024,1024] parameter(1)
      y = bf16[2048,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT z = bf16[2048,1024] tanh(y)
    """
    compiled = heron.compile(parse(f"HloModule m\n\nENTRY e {{{body}}}\n"), machine)
    assert isinstance(compiled, CompiledGpu) and [k.emitter for k in compiled.kernels] == ["block"]
    (image,) = compiled.program.images
    there, absent = BY_MACHINE[machine]
    text = image.ptx.decode()
    assert all(unit in text for unit in there), machine
    assert not any(unit in text for unit in absent), machine
    assert image.code.startswith(b"\x7fELF")


@needs_triton
def test_short_sums(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """Fewer elements than a matrix unit sums are filled up with zeros."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    config = BlockConfig((16, 32), 32)
    body = """
      a = s8[40,7] parameter(0)
      b = s8[7,48] parameter(1)
      ROOT d = s32[40,48] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    assert "mma.sync" in compile_block(text_of(body, config), "k", config, "sm_90").ptx


@needs_triton
def test_what_triton_refuses(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    with pytest.raises(HeronError, match="GEN016"):
        compile_block("module { tt.func public @k() { tt.nothing } }", "k", BlockConfig((16, 16)), "sm_90")


def test_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heron.codegen.triton.compile.missing", lambda: "Triton is not installed")
    with pytest.raises(HeronError, match="not installed"):
        compile_block("", "k", BlockConfig((16, 16)), "sm_90")


def test_text(golden: object) -> None:
    """The whole kernel of a small product, as Triton reads it."""
    config = BlockConfig((32, 32), 32, warps=4, stages=2)
    golden(Path(__file__).parent / "product.ttir", text_of(SMALL, config))  # type: ignore[operator]


UNITS = {
    "bytes": "wgmma.mma_async.sync.aligned.m64n64k32.s32.s8.s8",
    "floats_of_8_bits": "wgmma.mma_async.sync.aligned.m64n64k32.f32.e4m3.e5m2",
    "nibbles": "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
    "batched_and_transposed": "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16",
}


@needs_triton
@pytest.mark.parametrize("name", UNITS)
def test_operands(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every kind of operand goes to the matrix units of a warp group."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    body, config = TEXTS[name]
    config = replace(config, tiles=(*config.tiles[:-2], 64, 64), block_k=64)
    body = body.replace("48", "128").replace("32]", "128]").replace(",32,", ",128,")
    assert UNITS[name] in compile_block(text_of(body, config), "k", config, "sm_90").ptx


@pytest.mark.parametrize("online", [False, True])
def test_text_of_attention(online: bool, golden: object) -> None:
    """Causal attention in steps of 16 keys, which also gives what a gradient reads: three loops, or one."""
    body = attention(16, 32, mask="causal").replace("ROOT o", "o")
    body += "ROOT r = (f32[2,16,16], f32[2,16], f32[2,16]) tuple(o, m, t)"
    config = BlockConfig((1, 16, 16), 16, stages=2, row=16, online=online)
    name = "attention_online.ttir" if online else "attention.ttir"
    golden(Path(__file__).parent / name, text_of(body, config))  # type: ignore[operator]


@needs_triton
@pytest.mark.parametrize(("warps", "specialized"), [(8, False), (4, True)])
def test_copy_engine(warps: int, specialized: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Operands by descriptors, which lie in memory of the program's own; warps that do nothing else when asked for."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    config = BlockConfig((128, 128), 64, warps=warps, stages=3, tma=True, specialized=specialized)
    code = compile_block(text_of(PRODUCT, config), "k", config, "sm_90")
    assert "cp.async.bulk.tensor.2d.shared::" in code.ptx and "wgmma.mma_async" in code.ptx
    assert code.scratch == 2 * 128  # a descriptor has 128 bytes
    assert ("setmaxnreg" in code.ptx) == specialized == (code.warps > warps)
    if (disassembler := _tool("nvdisasm")) is not None:
        (tmp_path / "k.cubin").write_bytes(code.cubin)
        done = subprocess.run([disassembler, tmp_path / "k.cubin"], capture_output=True, text=True, check=True)
        assert "UTMALDG.2D" in done.stdout and "HGMMA" in done.stdout


def _tool(name: str) -> Path | None:
    """A program that comes with Triton."""
    from importlib.util import find_spec

    found = find_spec("triton")
    path = Path(found.origin).parent / "backends" / "nvidia" / "bin" / name if found and found.origin else Path()
    return path if path.is_file() else None


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name: str, golden: object) -> None:
    """Kernels of other operands and other ways, as Triton reads them."""
    body, config = TEXTS[name]
    golden(Path(__file__).parent / "texts" / f"{name}.ttir", text_of(body, config))  # type: ignore[operator]


def test_descriptors_as_versions_of_triton_spell_them() -> None:
    text = "%d: !tt.tensordesc<tensor<128x64xbf16>>, %t: tensor<2x!tt.ptr<f32>>"
    assert spelled(text, "3.6.0") == spelled(text, "3.7.1") == text
    assert (
        spelled(text, "3.8.0") == spelled(text, "3.10.0+git") == text.replace("<tensor<128x64xbf16>>", "<128x64xbf16>")
    )
