"""fft."""

from __future__ import annotations

from heron.hlo.op import Attr, AttrKind, Op, op


@op("fft")
class Fft(Op):
    operands = ("operand",)
    attributes = {
        "fft_type": Attr(AttrKind.ENUM, required=True, choices=("FFT", "IFFT", "RFFT", "IRFFT")),
        "fft_length": Attr(AttrKind.INTS, required=True),
    }
