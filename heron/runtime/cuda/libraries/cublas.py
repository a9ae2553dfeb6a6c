"""cuBLAS: triangular solves, and the scaling of inverse Fourier transforms.

The library thinks in columns. Of row-major matrices it solves the transposed system: sides and triangles swap.
Source: https://docs.nvidia.com/cuda/cublas and cublas_api.h of CUDA 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_int, c_int64, c_size_t, c_void_p
from math import prod
from typing import Any, ClassVar

from heron.hlo.ir.types import C64, C128, F32, F64, ElementType
from heron.records import dataclass
from heron.runtime.cuda.libraries.base import Workspace
from heron.runtime.cuda.libraries.bound import LETTERS, Bound, size_of
from heron.runtime.cuda.libraries.cublaslt import number
from heron.runtime.cuda.libraries.native import Functions, Native
from heron.runtime.library_call import Descriptor

_SCALE = {F32: "cublasSscal_v2_64", F64: "cublasDscal_v2_64", C64: "cublasCsscal_v2_64", C128: "cublasZdscal_v2_64"}
_REAL = {C64: F32, C128: F64}
#: scratch memory of a solve, and of scaling and transposing: the library allocates its own where it is given none,
#: which a capture would keep as nodes that no graph inside a graph may have
_WORKSPACE, HELPER_WORKSPACE = 32 << 20, 32 << 10


@dataclass(frozen=True)
class TriangularSolve(Descriptor):
    """(a, b) → x with ``op(a) x = b`` (``left``) or ``x op(a) = b``; ``transpose``: N, T or C. Other arrays: scratch.

    ``columns``: a, b and x are stored column after column.
    """

    library: ClassVar[str] = "cublas"
    routine: ClassVar[str] = "trsm"

    left: bool = True
    lower: bool = True
    transpose: str = "N"
    unit_diagonal: bool = False
    columns: bool = False


class CuBlas(Bound[str]):
    """The library. Its plans are names of routines."""

    name = "cublas"

    def __init__(
        self, workspace: Workspace | None = None, functions: Functions | None = None, driver: Functions | None = None
    ) -> None:
        super().__init__(workspace, functions, driver)
        self._handle = c_void_p()
        self.functions.call("cublasCreate_v2", byref(self._handle))

    def prepare(self, descriptor: Descriptor) -> int:
        self.plan(descriptor)
        return _WORKSPACE

    def make(self, descriptor: Descriptor) -> str:
        if not isinstance(descriptor, TriangularSolve):
            raise self.refuse(descriptor, "it is not a triangular solve")
        letter = LETTERS.get(descriptor.arrays[0].element_type)
        if letter is None:
            raise self.refuse(descriptor, "it solves in f32, f64, c64 and c128")
        return f"cublas{letter}trsm_v2"

    def call(self, stream: int, buffers: Sequence[int], descriptor: Descriptor) -> None:
        routine, d = self.plan(descriptor), descriptor
        assert isinstance(d, TriangularSolve)
        a, b = d.arrays[:2]
        self.copy(stream, buffers[2], buffers[1], size_of(b))
        *batch, outer, inner = b.dims
        rows, columns = inner, outer  # as the library sees what is stored
        left, lower = (d.left, d.lower) if d.columns else (not d.left, not d.lower)
        order = a.dims[-1]
        one = number(1.0, a.element_type)
        step_a, step_b = (size_of(x) // max(1, prod(batch)) for x in (a, b))
        scratch = self.scratch(stream, _WORKSPACE)
        with self._lock:
            work_on(self.functions, self._handle, stream, scratch, _WORKSPACE)
            for n in range(prod(batch)):
                self.functions.call(
                    routine,
                    self._handle,
                    c_int(not left),
                    c_int(not lower),
                    c_int("NTC".index(d.transpose)),
                    c_int(d.unit_diagonal),
                    c_int(rows),
                    c_int(columns),
                    byref(one),
                    c_void_p(buffers[0] + n * step_a),
                    c_int(order),
                    c_void_p(buffers[2] + n * step_b),
                    c_int(rows),
                )

    def close(self) -> None:
        if self._handle:
            self.functions.call("cublasDestroy_v2", self._handle)
            self._handle = c_void_p()


def work_on(functions: Functions, handle: c_void_p, stream: int, scratch: int, size: int) -> None:
    """Have a handle enqueue on a stream, with scratch memory of the caller's: choosing a stream takes it away."""
    functions.call("cublasSetStream_v2", handle, c_void_p(stream))
    functions.call("cublasSetWorkspace_v2", handle, c_void_p(scratch), c_size_t(size))


class Helper:
    """Scaling and transposing by cuBLAS, for other libraries.

    `open` comes before the first call: making a handle allocates, which a capture does not allow. ``scratch`` of a
    call: the address of `HELPER_WORKSPACE` bytes.
    """

    def __init__(self, functions: Functions | None = None) -> None:
        self._functions, self._handle = functions, c_void_p()

    def open(self) -> None:
        """Make the handle, if there is none yet."""
        if self._functions is None:
            self._functions = Native("cublas")
        if not self._handle:
            self._functions.call("cublasCreate_v2", byref(self._handle))

    def scale(self, stream: int, scratch: int, address: int, t: ElementType, count: int, by: float) -> None:
        """Enqueue ``x *= by`` for `count` elements."""
        factor = number(by, _REAL.get(t, t))
        self._call(stream, scratch, _SCALE[t], c_int64(count), byref(factor), c_void_p(address), c_int64(1))

    def transpose(
        self, stream: int, scratch: int, t: ElementType, origin: int, target: int, lines: int, length: int
    ) -> None:
        """Enqueue the transpose of a matrix stored as `lines` of `length` elements each."""
        one, none = number(1.0, t), number(0.0, t)
        to, pitch = c_void_p(target), c_int(lines)
        sizes = pitch, c_int(length)
        source = byref(one), c_void_p(origin), c_int(length)
        arguments = c_int(1), c_int(0), *sizes, *source, byref(none), to, pitch, to, pitch
        self._call(stream, scratch, f"cublas{LETTERS[t]}geam", *arguments)

    def _call(self, stream: int, scratch: int, function: str, *arguments: Any) -> None:
        assert self._functions is not None, "the helper is not open"
        work_on(self._functions, self._handle, stream, scratch, HELPER_WORKSPACE)
        self._functions.call(function, self._handle, *arguments)

    def close(self) -> None:
        if self._functions is not None and self._handle:
            self._functions.call("cublasDestroy_v2", self._handle)
            self._handle = c_void_p()
