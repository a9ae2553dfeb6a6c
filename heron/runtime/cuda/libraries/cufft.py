"""cuFFT: transforms of all lines, planes or boxes of an array. Inverse ones are scaled by cuBLAS: cuFFT does not.

Source: https://docs.nvidia.com/cuda/cufft and cufft.h of CUDA 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int, c_size_t, c_void_p
from math import prod
from typing import ClassVar

from heron.hlo.ir.types import C64, C128, F32, F64
from heron.records import dataclass
from heron.runtime.cuda.libraries.base import Workspace
from heron.runtime.cuda.libraries.bound import Bound, ints, size_of
from heron.runtime.cuda.libraries.cublas import HELPER_WORKSPACE, Helper
from heron.runtime.cuda.libraries.native import Functions
from heron.runtime.library_call import Descriptor

#: cufftType, and the function that runs it, by the types of operand and result
_TYPES = {
    (C64, C64): (0x29, "C2C"), (F32, C64): (0x2A, "R2C"), (C64, F32): (0x2C, "C2R"),
    (C128, C128): (0x69, "Z2Z"), (F64, C128): (0x6A, "D2Z"), (C128, F64): (0x6C, "Z2D"),
}  # fmt: skip
_FORWARD, _INVERSE = -1, 1


@dataclass(frozen=True)
class Fft(Descriptor):
    """A transform of the last dimensions; ``kind`` is FFT, IFFT, RFFT or IRFFT as HLO has them."""

    library: ClassVar[str] = "cufft"
    routine: ClassVar[str] = "fft"

    kind: str
    lengths: tuple[int, ...]

    @property
    def batch(self) -> int:
        return prod(self.arrays[0].dims[: -len(self.lengths)])


@dataclass(frozen=True, slots=True)
class _Plan:
    handle: c_int
    function: str
    workspace: int
    copied: int  # bytes of the operand, where the transform would destroy it
    scaling: int  # bytes of scratch memory of the scaling of an inverse transform

    @property
    def bytes(self) -> int:
        """Of all scratch memory: the transform's, then the copy, then the scaling's."""
        return self.workspace + self.copied + self.scaling


class CuFft(Bound[_Plan]):
    """The library, with a plan for each descriptor."""

    name = "cufft"

    def __init__(
        self,
        workspace: Workspace | None = None,
        functions: Functions | None = None,
        driver: Functions | None = None,
        blas: Functions | None = None,
    ) -> None:
        super().__init__(workspace, functions, driver)
        self._helper = Helper(blas)

    def prepare(self, descriptor: Descriptor) -> int:
        return self.plan(descriptor).bytes

    def make(self, descriptor: Descriptor) -> _Plan:
        if not isinstance(descriptor, Fft):
            raise self.refuse(descriptor, "it is not a Fourier transform")
        operand, result = descriptor.arrays
        types = operand.element_type, result.element_type
        if types not in _TYPES:
            raise self.refuse(descriptor, "it has no transform of these types")
        number, function = _TYPES[types]
        handle, size = c_int(), c_size_t()
        self.functions.call("cufftCreate", byref(handle))
        self.functions.call("cufftSetAutoAllocation", handle, c_int(0))
        lengths = descriptor.lengths
        self.functions.call(
            "cufftMakePlanMany",
            handle,
            c_int(len(lengths)),
            ints(lengths),
            *(None, c_int(1), c_int(0)) * 2,
            c_int(number),
            c_int(descriptor.batch),
            byref(size),
        )
        destroys = function in ("C2R", "Z2D") and len(lengths) > 1
        scales = descriptor.kind.startswith("I")
        if scales:
            self._helper.open()
        copied = _aligned(size_of(descriptor.arrays[0])) if destroys else 0
        return _Plan(handle, function, _aligned(size.value), copied, HELPER_WORKSPACE if scales else 0)

    def call(self, stream: int, buffers: Sequence[int], descriptor: Descriptor) -> None:
        plan, d = self.plan(descriptor), descriptor
        assert isinstance(d, Fft)
        origin, target = buffers
        scratch = self.scratch(stream, plan.bytes)
        if plan.copied:
            origin = scratch + plan.workspace
            self.copy(stream, origin, buffers[0], size_of(d.arrays[0]))
        inverse = d.kind.startswith("I")
        with self._lock:  # stream and work area belong to the plan
            self.functions.call("cufftSetStream", plan.handle, c_void_p(stream))
            if plan.workspace:
                self.functions.call("cufftSetWorkArea", plan.handle, c_void_p(scratch))
            direction = (c_int(_INVERSE if inverse else _FORWARD),) if plan.function in ("C2C", "Z2Z") else ()
            self.functions.call(
                f"cufftExec{plan.function}", plan.handle, c_void_p(origin), c_void_p(target), *direction
            )
        if inverse:
            out = d.arrays[1]
            space = scratch + plan.workspace + plan.copied
            self._helper.scale(stream, space, target, out.element_type, prod(out.dims), 1 / prod(d.lengths))

    def close(self) -> None:
        for plan in self._plans.values():
            self.functions.call("cufftDestroy", plan.handle)
        self._plans.clear()
        self._helper.close()


def _aligned(size: int) -> int:
    """Bytes, up to where the next part of scratch memory may begin."""
    return -(-size // 256) * 256
