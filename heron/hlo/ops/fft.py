"""fft."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.op import Attr, AttrKind, Op, Trait, op, reject
from heron.hlo.ir.shape import UNBOUNDED, Shape
from heron.hlo.ir.types import C64, C128, F32, F64
from heron.hlo.meaning.numeric import precise
from heron.hlo.ops.rules import array, attr, default, need_arrays

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Evaluation
    from heron.hlo.ir.instruction import Instruction

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")


@op("fft")
class Fft(Op):
    """Discrete Fourier transforms of the last 1 to 3 dimensions; inverse ones divide by the number of elements.

    Shape: the operand's; RFFT gives ``n / 2 + 1`` elements in the last dimension, IRFFT takes as many.
    """

    operands = ("operand",)
    attributes = {
        "fft_type": Attr(AttrKind.ENUM, required=True, choices=KINDS),
        "fft_length": Attr(AttrKind.INTS, required=True),
    }
    traits = {Trait.LIBRARY}

    def shape(self, i: Instruction, x: Shape) -> Shape:
        need_arrays(i, x)
        kind, lengths = attr(i, "fft_type"), tuple(attr(i, "fft_length"))
        if kind not in KINDS:
            reject(i, f"fft_type={kind} is none of {', '.join(KINDS)}")
        if not 1 <= len(lengths) <= 3 or len(lengths) > x.rank:
            reject(i, "fft_length needs 1 to 3 entries, no more than the rank", f"{len(lengths)} given for {x}")
        types = (F32, F64) if kind == "RFFT" else (C64, C128)
        if x.element_type not in types:
            reject(i, f"{kind} takes {types[0]} or {types[1]}", f"the operand is {x}")
        dims, want = list(x.dims), lengths
        if kind == "IRFFT":
            want = (*lengths[:-1], lengths[-1] // 2 + 1 if lengths[-1] else 0)
        is_other = any(
            d not in (size, UNBOUNDED) for d, size in zip(x.dims[x.rank - len(lengths) :], want, strict=True)
        )
        if is_other and (x.num_elements or kind in ("RFFT", "IRFFT")):
            reject(i, f"the operand's last dimensions must be {list(want)}", f"it is {x}")
        if kind == "RFFT":
            dims[-1] = lengths[-1] // 2 + 1 if lengths[-1] else 0
            return array(C64 if x.element_type is F32 else C128, dims)
        if kind == "IRFFT":
            dims[-1] = lengths[-1]
            return array(F32 if x.element_type is C64 else F64, dims)
        return default(x)

    def evaluate(self, ev: Evaluation, i: Instruction, x: np.ndarray) -> np.ndarray:
        axes = tuple(range(x.ndim - len(i.fft_length), x.ndim))
        if i.shape.num_elements == 0:
            return np.zeros(i.shape.dims, i.shape.element_type.dtype)
        transform = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}
        value = transform[i.fft_type](precise(x), i.fft_length, axes)
        return value.astype(i.shape.element_type.dtype)
