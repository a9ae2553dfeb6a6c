"""Instructions one by one, held against NVIDIA's manual: values that a reader can check."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from heron.errors import HeronError
from tests.ptx.body import Unknown
from tests.ptx.run import simulated
from tests.ptx.translate import to_llvm

_HEAD = """.version 7.8
.target sm_90
.address_size 64
.visible .entry k(.param .u64 .ptr .align 16 k_param_0, .param .u64 .ptr .align 16 k_param_1)
.reqntid 1, 1, 1
{
  .reg .pred %p<4>; .reg .b16 %rs<8>; .reg .b32 %r<8>; .reg .b64 %rd<8>;
  ld.param.b64 %rd1, [k_param_0];
  ld.param.b64 %rd2, [k_param_1];
  ld.global.b64 %rd3, [%rd1];
  ld.global.b64 %rd4, [%rd1+8];
  ld.global.b64 %rd5, [%rd1+16];
  cvt.u32.u64 %r1, %rd3; cvt.u32.u64 %r2, %rd4; cvt.u32.u64 %r3, %rd5;
  cvt.u16.u64 %rs1, %rd3; cvt.u16.u64 %rs2, %rd4;
"""
_TAIL = "  ret;\n}\n"


def run(body: str, *words: int) -> int:
    """The word that instructions leave at the second array; ``words`` are in %rd3 to %rd5, and their parts in %r and %rs."""
    given = np.zeros(3, np.uint64)
    given[: len(words)] = [w % (1 << 64) for w in words]
    out = np.zeros(1, np.uint64)
    simulated(_HEAD + body + _TAIL, "k", (1, 1, 1), (1, 1, 1))([(given.ctypes.data, 24), (out.ctypes.data, 8)])
    return int(out[0])


def f32(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]


def f64(x: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", x))[0]


NAN, INF, DENORMAL = 0x7FC12345, f32(float("inf")), 0x00000001
#: an instruction on 32 bits, its operands, and the result
OF_32 = [
    ("shl.b32 %r0, %r1, %r2", (1, 31), 1 << 31),
    ("shl.b32 %r0, %r1, %r2", (1, 32), 0),
    ("shr.s32 %r0, %r1, %r2", (-8, 1000), 0xFFFFFFFF),
    ("shr.u32 %r0, %r1, %r2", (-8, 33), 0),
    ("shf.l.wrap.b32 %r0, %r1, %r2, %r3", (0x80000001, 0x2, 33), 0x5),
    ("shf.r.wrap.b32 %r0, %r1, %r2, %r3", (0x80000001, 0x3, 1), 0xC0000000),
    ("bfe.u32 %r0, %r1, %r2, %r3", (0xABCD1234, 8, 8), 0x12),
    ("bfe.s32 %r0, %r1, %r2, %r3", (0x0000F000, 12, 4), 0xFFFFFFFF),
    ("bfe.u32 %r0, %r1, %r2, %r3", (0xABCD1234, 28, 8), 0xA),
    ("bfe.u32 %r0, %r1, %r2, %r3", (0xABCD1234, 40, 8), 0),
    ("bfe.s32 %r0, %r1, %r2, %r3", (0xABCD1234, 40, 8), 0xFFFFFFFF),
    ("bfi.b32 %r0, %r1, %r2, 8, 4", (0xF5, 0x11111111), 0x11111511),
    ("prmt.b32 %r0, %r1, %r2, 0x5410", (0x33221100, 0x77665544), 0x55441100),
    ("prmt.b32 %r0, %r1, %r2, 0xF941", (0x33229980, 0xFF665544), 0xFFFF4499),
    ("mul.hi.s32 %r0, %r1, %r2", (-1, 1), 0xFFFFFFFF),
    ("mul.hi.u32 %r0, %r1, %r2", (0xFFFFFFFF, 2), 1),
    ("mad.lo.s32 %r0, %r1, %r2, %r3", (3, -4, 5), (-7) % (1 << 32)),
    ("clz.b32 %r0, %r1", (0,), 32),
    ("popc.b32 %r0, %r1", (0xF0F0,), 8),
    ("brev.b32 %r0, %r1", (1,), 1 << 31),
    ("add.cc.u32 %r3, %r1, %r2; addc.u32 %r0, 0, 0", (0xFFFFFFFF, 1), 1),
    ("sub.cc.u32 %r3, %r1, %r2; subc.u32 %r0, 0, 0", (0, 1), 0xFFFFFFFF),
    ("min.f32 %r0, %r1, %r2", (NAN, f32(1.0)), f32(1.0)),
    ("min.f32 %r0, %r1, %r2", (f32(0.0), f32(-0.0)), f32(-0.0)),
    ("max.f32 %r0, %r1, %r2", (f32(-0.0), f32(0.0)), f32(0.0)),
    ("copysign.f32 %r0, %r1, %r2", (f32(-1.0), f32(2.0)), f32(-2.0)),
    ("add.ftz.f32 %r0, %r1, %r2", (DENORMAL, f32(0.0)), 0),
    ("add.rn.f32 %r0, %r1, %r2", (DENORMAL, f32(0.0)), DENORMAL),
    ("add.rz.f32 %r0, %r1, %r2", (f32(1.0), f32(2.0**-24 * 1.5)), f32(1.0)),
    ("add.rn.f32 %r0, %r1, %r2", (f32(1.0), f32(2.0**-24 * 1.5)), f32(1.0) + 1),
    ("fma.rm.f32 %r0, %r1, %r2, %r3", (f32(-1.0), f32(1.0), f32(-(2.0**-30))), f32(-1.0) + 1),
    ("fma.rn.f32 %r0, %r1, %r2, %r3", (f32(1 + 2.0**-12), f32(1 - 2.0**-12), f32(-1.0)), f32(-(2.0**-24))),
    ("cvt.sat.f32.f32 %r0, %r1", (NAN,), 0),
    ("cvt.sat.f32.f32 %r0, %r1", (f32(7.0),), f32(1.0)),
    ("cvt.rzi.s32.f32 %r0, %r1", (f32(3e9),), 0x7FFFFFFF),
    ("cvt.rzi.s32.f32 %r0, %r1", (NAN,), 0),
    ("cvt.rzi.u32.f32 %r0, %r1", (f32(-5.0),), 0),
    ("cvt.rni.s32.f32 %r0, %r1", (f32(2.5),), 2),
    ("cvt.rni.f32.f32 %r0, %r1", (f32(-0.5),), f32(-0.0)),
    ("cvt.rn.bf16x2.f32 %r0, %r1, %r2", (f32(2.0), f32(1.0)), 0x40003F80),
    ("cvt.rn.f32.u32 %r0, %r1", (0xFFFFFFFF,), f32(2.0**32)),
    ("setp.ne.f32 %p1, %r1, %r1; selp.b32 %r0, 1, 0, %p1", (NAN,), 0),
    ("setp.neu.f32 %p1, %r1, %r1; selp.b32 %r0, 1, 0, %p1", (NAN,), 1),
    ("setp.lt.and.s32 %p1|%p2, %r1, %r2, %p3; selp.b32 %r0, 1, 0, %p2", (1, 2), 0),
    ("ex2.approx.ftz.f32 %r0, %r1", (f32(-130.0),), 0),
    ("rcp.approx.ftz.f32 %r0, %r1", (f32(2.0**-127),), INF),
    ("rsqrt.approx.f32 %r0, %r1", (f32(4.0),), f32(0.5)),
    ("sub.rn.f32.f16 %r0, %rs1, %r2", (0x3C00, f32(2.5)), f32(-1.5)),
    ("fma.rn.f32.bf16 %r0, %rs1, %rs2, %r3", (0x4000, 0x4040, f32(0.25)), f32(6.25)),
    ("mov.b64 {%r0, %r3}, %rd3", (0x1_0000_0002,), 2),
    ("{ .reg .b32 tmp; mov.b64 {tmp, %r0}, %rd3; }", (0x1_0000_0002,), 1),
]  # fmt: skip
OF_64 = [
    ("shl.b64 %rd0, %rd3, %r2", (1, 1 << 32), 1),
    ("shl.b64 %rd0, %rd3, %r2", (1, 64), 0),
    ("mul.wide.u32 %rd0, %r1, %r2", (0xFFFFFFFF, 0xFFFFFFFF), 0xFFFFFFFE00000001),
    ("cvt.rzi.s64.f32 %rd0, %r1", (NAN,), 1 << 63),
    ("cvt.rzi.s64.f64 %rd0, %rd3", (f64(1e30),), (1 << 63) - 1),
    ("rcp.approx.ftz.f64 %rd0, %rd3", (f64(4.0) + 1,), f64(0.25)),
    ("rsqrt.approx.f64 %rd0, %rd3", (f64(0.0625),), f64(4.0)),
    ("cvt.s64.s32 %rd0, %r1", (-2,), (-2) % (1 << 64)),
    ("cvt.s16.s8 %rs3, %rs1; cvt.s64.s16 %rd0, %rs3", (0x1FE,), (-2) % (1 << 64)),
    ("cvt.rn.bf16.f32 %rs3, %r1; cvt.u64.u16 %rd0, %rs3", (f32(1.0) + 0x8000,), 0x3F80),
    ("cvt.rn.f16.f32 %rs3, %r1; cvt.u64.u16 %rd0, %rs3", (f32(65520.0),), 0x7C00),
    ("mul.rn.bf16 %rs3, %rs1, %rs2; cvt.u64.u16 %rd0, %rs3", (0x3F81, 0x3F81), 0x3F82),
    ("fma.rn.f16 %rs3, %rs1, %rs1, %rs2; cvt.u64.u16 %rd0, %rs3", (0x3C01, 0xBC02), 0x0010),
    ("fma.rn.bf16 %rs3, %rs1, %rs1, %rs2; cvt.u64.u16 %rd0, %rs3", (0x3F80, 0x7F80), 0x7F80),
    ("fma.rn.bf16 %rs3, %rs1, %rs1, %rs2; cvt.u64.u16 %rd0, %rs3", (0x3F80, 0x3B80), 0x3F80),
    ("fma.rn.bf16 %rs3, %rs1, %rs1, %rs2; cvt.u64.u16 %rd0, %rs3", (0x3F80, 0x3B81), 0x3F81),
    ("fma.rn.bf16 %rs3, %rs1, %rs1, %rs2; cvt.u64.u16 %rd0, %rs3", (0x0001, 0x8000), 0x0000),
    ("@%p3 add.s64 %rd3, %rd3, 1; @!%p3 add.s64 %rd3, %rd3, 2; mov.b64 %rd0, %rd3", (5,), 7),
]


@pytest.mark.parametrize(("body", "words", "wanted"), OF_32, ids=[f"{n} {c[0]}" for n, c in enumerate(OF_32)])
def test_32_bits(body: str, words: tuple[int, ...], wanted: int) -> None:
    assert run(f"  setp.eq.b32 %p3, 0, 1;\n  {body};\n  st.global.b32 [%rd2], %r0;\n", *words) == wanted


@pytest.mark.parametrize(("body", "words", "wanted"), OF_64, ids=[f"{n} {c[0]}" for n, c in enumerate(OF_64)])
def test_64_bits(body: str, words: tuple[int, ...], wanted: int) -> None:
    assert run(f"  setp.eq.b32 %p3, 0, 1;\n  {body};\n  st.global.b64 [%rd2], %rd0;\n", *words) == wanted


@pytest.mark.parametrize("body", ["div.s32 %r0, %r1, %r2", "rem.u32 %r0, %r1, %r2"])
def test_a_quotient_by_zero_is_a_number_nobody_expects(body: str) -> None:
    assert run(f"  {body};\n  st.global.b32 [%rd2], %r0;\n", 7, 0) not in (0, 7, 0xFFFFFFFF)


@pytest.mark.parametrize(
    "body", ["tex.1d.v4.f32.s32 %r0, %r1", "fma.rz.f16 %rs3, %rs1, %rs2, %rs1", "add.sat.s32 %r0, %r1, %r2"]
)
def test_an_instruction_without_a_meaning_is_told(body: str) -> None:
    with pytest.raises(Unknown, match=body.split()[0]):
        to_llvm(_HEAD + f"  {body};\n" + _TAIL)


@pytest.mark.parametrize(
    ("body", "said"),
    [("st.global.b32 [%rd2+6], %r1", "align"), ("st.global.b32 [%rd2+8], %r1", "outside"), ("ld.global.v2.b64 {%rd0, %rd3}, [%rd1+8]", "align")],
)  # fmt: skip
def test_accesses_that_a_gpu_refuses(body: str, said: str) -> None:
    with pytest.raises(HeronError, match=said):
        run(f"  {body};\n")
