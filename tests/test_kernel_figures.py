"""Figures of kernels: PTX taken apart, every kernel measured, and a refusal that is told and not lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import heron
from benchmarks import kernels, peer_gpu, ptx_text
from heron import targets
from heron.codegen.llvm.assemble import knows
from heron.compiling import compile
from heron.errors import HeronError

PTX = """.visible .entry k(
	.param .u64 .ptr .align 1 k_param_0
)
.reqntid 128
{
	.reg .b32 	%r<9>;

	ld.param.b64 	%rd1, [k_param_0];
	// begin inline asm
	rcp.approx.ftz.f32 %r1,%r2;
	// end inline asm
	ld.global.nc.v4.b32 	{%r11, %r12, %r13, %r14}, [%rd8];
	@%p1 bra 	$L__BB0_2;
	st.global.b16 	[%rd9], %rs1;
	ld.shared.b32 	%r3, [%rd9];
$L__BB0_2:
	ret;
}
"""


def test_ptx_taken_apart() -> None:
    (code,) = ptx_text.kernels(PTX + "\t// -- End function\n").values()
    assert code.count == 7
    assert code.accesses == {128: 1, 16: 1}
    assert code.instructions["bra"] == code.instructions["ret"] == code.instructions["rcp.approx.ftz.f32"] == 1


def test_every_kernel_is_measured() -> None:
    rows = list(kernels.measure("cumsum", targets.get("sm_90"), small=True, assembled=knows("sm_90")))
    assert len(rows) == 3 and not any(r.error for r in rows)
    for r in rows:
        assert {"emit", "lower-tensors", "LLVM text", "LLVM optimise", "PTX"} <= set(r.steps)
        assert r.instructions > 20 and 0 < r.to_ptx < 60
        assert (r.resources is not None) == knows("sm_90")
    assert "median ms" in kernels.section(rows, "sm_90")


def test_a_refused_kernel_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise HeronError("LLVM025", "nvJitLink refused the PTX", why="planted")

    monkeypatch.setattr(kernels, "assemble", refuse)
    monkeypatch.setattr("heron.codegen.llvm.assemble.knows", lambda _: True)
    result = CliRunner().invoke(kernels.main, ["softmax", "--small", "--ptxas"])
    assert result.exit_code == 1 and "planted" in result.output


@pytest.mark.skipif(not knows("sm_90a"), reason="neither nvJitLink nor ptxas is here")
def test_xla_s_dump_is_read(tmp_path: Path) -> None:
    """A dump as XLA:GPU writes it, of a program with a loop, a product kernel and a library call."""
    (tmp_path / "m.thunk_sequence.txt").write_text(
        "001: kCustomKernel [source | next=002 (1)] gemm_fusion_dot grid: [8, 1, 1] threads: [64, 1, 1]\n"
        "002: kCopy [source | sink] kCopy\n"
        "003: kWhile [prev=002 (1) | sink]\n"
        "condition:\n"
        "  004: kKernel [source | sink] k grid: [1, 1, 1] threads: [128, 1, 1]\n"
    )
    (tmp_path / "optimized.hlo").write_text("""HloModule m

inner {
  ROOT p = f32[8,8] parameter(0)
}

dot {
  p = f32[8,8] parameter(0)
  ROOT d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY e {
  x = f32[8,8] parameter(0)
  gemm_fusion_dot = f32[8,8] fusion(x), kind=kCustom, calls=dot, backend_config={"fusion_backend_config":{"kind":"__triton_nested_gemm_fusion"}}
  ROOT n = f32[8,8] negate(gemm_fusion_dot)
}
""")
    ptx = compile(
        heron.parse("HloModule k\n\nENTRY e {\n  x = f32[8,8] parameter(0)\n  ROOT k = f32[8,8] negate(x)\n}\n"),
        "sm_90",
    ).ptx  # type: ignore[attr-defined]
    (tmp_path / "k.ptx").write_text(ptx)
    (tmp_path / "product.ptx").write_text(
        ptx.replace("wrapped_k", "gemm_fusion_dot").replace("wrapped_negate", "gemm_fusion_dot")
    )
    (tmp_path / "empty.ptx").write_text("")
    side = peer_gpu.theirs(tmp_path)
    assert (side.launches, side.products, side.others) == (1, 1, 1)
    assert (side.kernels, side.moved) == (1, 2 * 8 * 8 * 4)
    assert side.registers > 0 and side.instructions > 5


def test_what_is_no_dump(tmp_path: Path) -> None:
    with pytest.raises(HeronError) as caught:
        peer_gpu.theirs(tmp_path)
    assert caught.value.code == "CLI010"


def test_both_sides_in_a_table() -> None:
    ours = peer_gpu.Side(launches=2, kernels=2, instructions=50, moved=1_500_000)
    theirs = peer_gpu.Side(launches=1, kernels=1, instructions=100, moved=3_000_000)
    rows = [peer_gpu.Row("p", ours, theirs)]
    assert "50/100" in peer_gpu.table(rows) and "1.5/3" in peer_gpu.table(rows)
    assert "PTX instr: geometric mean 0.5 x XLA:GPU over 1 programs" in peer_gpu.means(rows)
