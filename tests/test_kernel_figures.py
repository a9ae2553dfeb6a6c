"""Figures of kernels: PTX taken apart, every kernel measured, and a refusal that is told and not lost."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from benchmarks import kernels, ptx_text
from heron import targets
from heron.codegen.llvm.assemble import knows
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
    rows = list(kernels.measure("softmax", targets.get("sm_90"), small=True, assembled=knows("sm_90")))
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
