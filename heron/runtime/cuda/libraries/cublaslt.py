"""cuBLASLt: matrix products with epilogues.

The library thinks in columns: a row-major matrix is its transpose there, so ``out = x y`` is asked for as
``out^T = y^T x^T``. Source: https://docs.nvidia.com/cuda/cublas and cublasLt.h of CUDA 13.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import byref, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from threading import Lock
from typing import Any, ClassVar

from heron.errors import HeronError
from heron.hlo.calls.gemm_shape import GemmShape
from heron.hlo.ir.types import BF16, C64, C128, F32, F64, S32, ElementType
from heron.records import dataclass
from heron.runtime.cuda.libraries.base import Library, Proposal, Workspace
from heron.runtime.cuda.libraries.native import Functions, Native
from heron.runtime.cuda.libraries.types import DATA_TYPES
from heron.runtime.library_call import Descriptor

#: what the library may use beside the arrays of a call, at most
WORKSPACE = 32 << 20

#: cublasComputeType_t
COMPUTE = {"f16": 64, "f32": 68, "f64": 70, "s32": 72, "bf16 from f32": 75, "tf32": 77}
#: cublasLtEpilogue_t
EPILOGUES = {
    "DEFAULT": 1, "RELU": 2, "BIAS": 4, "BIAS_RELU": 6, "GELU": 32, "BIAS_GELU": 36, "GELU_AUX": 160,
    "BIAS_GELU_AUX": 164,
}  # fmt: skip
#: cublasLtMatmulDescAttributes_t
_TRANSA, _TRANSB, _EPILOGUE, _BIAS, _AUX, _AUX_LD, _AUX_STRIDE = 3, 4, 7, 8, 11, 12, 13
_A_SCALE, _B_SCALE, _D_SCALE, _AMAX, _BIAS_TYPE = 17, 18, 20, 21, 26
#: cublasLtMatrixLayoutAttribute_t, cublasLtMatmulPreferenceAttributes_t
_BATCH, _STRIDE = 5, 6
_MAX_WORKSPACE = 1
#: least alignment of A, B, C and D: the library takes 256 bytes for granted, slices begin at multiples of 128
_ALIGNMENTS, _ALIGNED = (5, 6, 7, 8), 128


@dataclass(frozen=True)
class Matmul(Descriptor):
    """A product and its epilogue. Numbers of arrays are -1 where the call has none of that kind."""

    library: ClassVar[str] = "cublaslt"
    routine: ClassVar[str] = "matmul"

    shape: GemmShape
    compute: str
    out: int
    alpha: complex = 1.0
    beta: float = 0.0
    epilogue: str = "DEFAULT"
    lhs_stride: int = -1  # elements between matrices of a batch; -1: one matrix after the other
    rhs_stride: int = -1
    c: int = -1
    bias: int = -1
    aux: int = -1
    amax: int = -1
    lhs_scale: int = -1
    rhs_scale: int = -1
    out_scale: int = -1
    candidate: int = 0  # which of the library's proposals, best first
    workspace: int = WORKSPACE


class _Algorithm(ctypes.Structure):
    _fields_ = [("data", c_uint64 * 8)]


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", _Algorithm),
        ("workspace", c_size_t),
        ("status", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    ]


@dataclass(frozen=True, slots=True)
class Layouts:
    """The library's layouts of A, B, C and D. C's is D's, unless D's type is none that C may have."""

    a: c_void_p
    b: c_void_p
    c: c_void_p
    d: c_void_p

    def each(self) -> tuple[c_void_p, ...]:
        """Every layout once."""
        return (self.a, self.b, self.d) if self.c is self.d else (self.a, self.b, self.c, self.d)


@dataclass(slots=True)
class _Plan:
    """Handles of a descriptor, and the kernel the library proposed."""

    operation: c_void_p
    layouts: Layouts
    algorithm: Any
    workspace: int
    alpha: Any
    beta: Any


@dataclass(frozen=True, slots=True)
class Stored:
    """A matrix as the library sees it: columns of `rows` elements each."""

    rows: int
    columns: int
    is_transposed: bool
    stride: int


def stored(d: Matmul) -> tuple[Stored, Stored, Stored, bool]:
    """A, B and D of the library, and whether A is the lhs.

    With a row-major result A is the rhs: transposing both sides of ``out = lhs rhs`` swaps them.
    """
    s = d.shape
    lhs = Stored(s.m, s.k, True, s.m * s.k) if s.lhs_transposed else Stored(s.k, s.m, False, s.m * s.k)
    rhs = Stored(s.k, s.n, True, s.n * s.k) if s.rhs_transposed else Stored(s.n, s.k, False, s.n * s.k)
    lhs, rhs = (_strided(side, given) for side, given in ((lhs, d.lhs_stride), (rhs, d.rhs_stride)))
    if not s.out_transposed:
        return rhs, lhs, Stored(s.n, s.m, False, s.m * s.n), False
    turned = [Stored(x.rows, x.columns, not x.is_transposed, x.stride) for x in (lhs, rhs)]
    return turned[0], turned[1], Stored(s.m, s.n, False, s.m * s.n), True


def _strided(side: Stored, given: int) -> Stored:
    return side if given < 0 else Stored(side.rows, side.columns, side.is_transposed, given)


class CublasLt(Library):
    """The library, with a plan for each descriptor it has seen."""

    name = "cublaslt"

    def __init__(self, workspace: Workspace | None = None, functions: Functions | None = None) -> None:
        super().__init__(workspace)
        self._functions = functions or Native(self.name)
        self._handle = c_void_p()
        self._plans: dict[Matmul, _Plan] = {}
        self._lock = Lock()
        self._functions.call("cublasLtCreate", byref(self._handle))

    def prepare(self, descriptor: Descriptor) -> int:
        return self._plan(descriptor).workspace

    def call(self, stream: int, buffers: Sequence[int], descriptor: Descriptor) -> None:
        plan, d = self._plan(descriptor), descriptor
        assert isinstance(d, Matmul)
        a, b = (buffers[0], buffers[1]) if stored(d)[3] else (buffers[1], buffers[0])
        out = buffers[d.out]
        with self._lock:  # pointers of an epilogue are part of the plan
            for attribute, n in _pointers(d):
                self._set_operation(plan.operation, attribute, c_void_p(buffers[n]))
            self._functions.call(
                "cublasLtMatmul",
                self._handle,
                plan.operation,
                byref(plan.alpha),
                c_void_p(a),
                plan.layouts.a,
                c_void_p(b),
                plan.layouts.b,
                byref(plan.beta),
                c_void_p(buffers[d.c] if d.c >= 0 else out),
                plan.layouts.c,
                c_void_p(out),
                plan.layouts.d,
                byref(plan.algorithm),
                c_void_p(self.scratch(stream, plan.workspace)),
                c_size_t(plan.workspace),
                c_void_p(stream),
            )

    def proposals(self, descriptor: Descriptor, most: int) -> list[Proposal]:
        plan = self._plan(descriptor)
        assert isinstance(descriptor, Matmul)
        found = self._query(descriptor, plan.operation, plan.layouts, most)
        return [Proposal(n, int(h.workspace)) for n, h in enumerate(found) if not h.status]

    def close(self) -> None:
        for plan in self._plans.values():
            for layout in plan.layouts.each():
                self._functions.call("cublasLtMatrixLayoutDestroy", layout)
            self._functions.call("cublasLtMatmulDescDestroy", plan.operation)
        self._plans.clear()
        if self._handle:
            self._functions.call("cublasLtDestroy", self._handle)
            self._handle = c_void_p()

    # -- plans -------------------------------------------------------------------------------------------------------
    def _plan(self, descriptor: Descriptor) -> _Plan:
        if not isinstance(descriptor, Matmul):
            raise HeronError("RUN091", f"{self.name} does not do {descriptor.library}.{descriptor.routine}")
        with self._lock:
            found = self._plans.get(descriptor)
            if found is None:
                found = self._plans[descriptor] = self._make(descriptor)
            return found

    def _make(self, d: Matmul) -> _Plan:
        if d.epilogue not in EPILOGUES:
            raise HeronError("RUN091", f"{self.name} has no epilogue {d.epilogue}", where=str(d))
        if d.shape.out_transposed and d.epilogue != "DEFAULT":
            raise HeronError("RUN091", f"{self.name} adds a bias to rows of a row-major result only", where=str(d))
        a, b, out, is_lhs_first = stored(d)
        types = [d.arrays[n].element_type for n in (0, 1)]
        first, second = types if is_lhs_first else types[::-1]
        result = d.arrays[d.out].element_type
        operation = self._operation(d, a, b, result)
        sides = ((first, a), (second, b), (result, out))
        of_a, of_b, of_d = (self._layout(DATA_TYPES[t], side, d.shape.batch) for t, side in sides)
        of_c = of_d if result.bits > 8 or not result.is_float else self._layout(DATA_TYPES[BF16], out, d.shape.batch)
        layouts = Layouts(of_a, of_b, of_c, of_d)
        chosen = self._propose(d, operation, layouts)
        alpha, beta = number(d.alpha, scale_type(result)), number(d.beta, scale_type(result))
        return _Plan(operation, layouts, chosen.algorithm, int(chosen.workspace), alpha, beta)

    def _operation(self, d: Matmul, a: Stored, b: Stored, result: ElementType) -> c_void_p:
        made = c_void_p()
        compute, scale = c_int(COMPUTE[d.compute]), c_int(DATA_TYPES[scale_type(result)])
        self._functions.call("cublasLtMatmulDescCreate", byref(made), compute, scale)
        self._set_operation(made, _TRANSA, c_int32(a.is_transposed))
        self._set_operation(made, _TRANSB, c_int32(b.is_transposed))
        if d.epilogue != "DEFAULT":
            self._set_operation(made, _EPILOGUE, c_int32(EPILOGUES[d.epilogue]))
        if d.bias >= 0:
            self._set_operation(made, _BIAS_TYPE, c_int32(DATA_TYPES[d.arrays[d.bias].element_type]))
        if d.aux >= 0:
            self._set_operation(made, _AUX_LD, c_int64(d.shape.n))
            self._set_operation(made, _AUX_STRIDE, c_int64(d.shape.m * d.shape.n))
        return made

    def _set_operation(self, operation: c_void_p, attribute: int, value: Any) -> None:
        size = c_size_t(ctypes.sizeof(value))
        self._functions.call("cublasLtMatmulDescSetAttribute", operation, c_int(attribute), byref(value), size)

    def _layout(self, data_type: int, side: Stored, batch: int) -> c_void_p:
        made = c_void_p()
        rows, columns = c_uint64(side.rows), c_uint64(side.columns)
        step = c_int64(max(1, side.rows))
        self._functions.call("cublasLtMatrixLayoutCreate", byref(made), c_int(data_type), rows, columns, step)
        if batch > 1:
            for attribute, value in ((_BATCH, c_int32(batch)), (_STRIDE, c_int64(side.stride))):
                size = c_size_t(ctypes.sizeof(value))
                self._functions.call("cublasLtMatrixLayoutSetAttribute", made, c_int(attribute), byref(value), size)
        return made

    def _propose(self, d: Matmul, operation: c_void_p, layouts: Layouts) -> Heuristic:
        """The library's proposal of that number, the last where it has fewer. Raises RUN091 when it has none."""
        found = [h for h in self._query(d, operation, layouts, d.candidate + 1) if not h.status]
        if not found:
            raise HeronError("RUN091", f"{self.name} has no kernel for this product", where=str(d))
        return found[-1]

    def _query(self, d: Matmul, operation: c_void_p, layouts: Layouts, count: int) -> list[Heuristic]:
        """At most `count` of the library's proposals, best first."""
        preference = c_void_p()
        self._functions.call("cublasLtMatmulPreferenceCreate", byref(preference))
        limit, size = c_uint64(d.workspace), c_size_t(8)
        name = "cublasLtMatmulPreferenceSetAttribute"
        self._functions.call(name, preference, c_int(_MAX_WORKSPACE), byref(limit), size)
        for attribute in _ALIGNMENTS:
            self._functions.call(name, preference, c_int(attribute), byref(c_uint32(_ALIGNED)), c_size_t(4))
        found = c_int()
        proposals = (Heuristic * count)()
        self._functions.call(
            "cublasLtMatmulAlgoGetHeuristic",
            self._handle,
            operation,
            layouts.a,
            layouts.b,
            layouts.c,
            layouts.d,
            preference,
            c_int(count),
            proposals,
            byref(found),
        )
        self._functions.call("cublasLtMatmulPreferenceDestroy", preference)
        return list(proposals[: min(found.value, count)])


def _pointers(d: Matmul) -> list[tuple[int, int]]:
    """Attributes that are addresses, and whose."""
    first, second = (_A_SCALE, _B_SCALE) if stored(d)[3] else (_B_SCALE, _A_SCALE)
    named = (
        (_BIAS, d.bias), (_AUX, d.aux), (_AMAX, d.amax), (first, d.lhs_scale), (second, d.rhs_scale),
        (_D_SCALE, d.out_scale),
    )  # fmt: skip
    return [(attribute, n) for attribute, n in named if n >= 0]


def scale_type(result: ElementType) -> ElementType:
    """The type of alpha and beta."""
    return result if result in (F64, C64, C128, S32) else F32


def number(value: complex, t: ElementType) -> Any:
    """A number in memory as the library reads it."""
    if t in (C64, C128):
        part = c_float if t is C64 else c_double
        return (part * 2)(value.real, value.imag)
    if t is S32:
        return c_int32(int(value.real))
    return c_double(value.real) if t is F64 else c_float(value.real)
