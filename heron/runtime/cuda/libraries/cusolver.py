"""cuSOLVER: factorisations of dense matrices, one matrix of a batch after the other.

The library reads matrices column after column. Those stored otherwise are transposed on the way in and out, but for
Cholesky, where the other triangle of the transpose says the same.
Source: https://docs.nvidia.com/cuda/cusolver and cusolverDn.h of CUDA 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref, c_byte, c_int, c_void_p
from math import prod
from typing import Any, ClassVar

from heron.hlo.ir.types import C64, C128
from heron.records import dataclass
from heron.runtime.cuda.libraries.base import Workspace
from heron.runtime.cuda.libraries.bound import LETTERS, Bound, size_of
from heron.runtime.cuda.libraries.cublas import HELPER_WORKSPACE, Helper
from heron.runtime.cuda.libraries.native import Functions
from heron.runtime.library_call import Array, Descriptor

_COMPLEX_NAMES = {"syevd": "heevd", "orgqr": "ungqr"}


@dataclass(frozen=True)
class Factorization(Descriptor):
    """One of potrf, getrf, geqrf, orgqr, syevd, gesvd, gesvdj on every matrix of a batch.

    Arrays: the operands, then the results in the routine's order; the first result starts as a copy of the matrix.
    ``columns``: matrices are stored column after column.
    """

    library: ClassVar[str] = "cusolver"
    routine: ClassVar[str] = "factor"
    #: iterating routines read numbers back; NVIDIA promises capture for none of them
    is_capturable: ClassVar[bool] = False

    kind: str
    operands: int = 1
    lower: bool = True
    vectors: bool = True
    full: bool = True
    columns: bool = True


@dataclass(frozen=True, slots=True)
class _Plan:
    name: str
    work: int  # elements of scratch memory
    bytes: int  # of it, of an info nobody asked for, of transposed matrices, and of transposing
    turned: dict[int, int]  # matrices among the results that are transposed, and where in scratch memory
    parameters: Any = None


class CuSolver(Bound[_Plan]):
    """The library, with the scratch memory of each descriptor asked for once."""

    name = "cusolver"

    def __init__(
        self,
        workspace: Workspace | None = None,
        functions: Functions | None = None,
        driver: Functions | None = None,
        blas: Functions | None = None,
    ) -> None:
        super().__init__(workspace, functions, driver)
        self._helper = Helper(blas)
        self._handle = c_void_p()
        self.functions.call("cusolverDnCreate", byref(self._handle))

    def prepare(self, descriptor: Descriptor) -> int:
        return self.plan(descriptor).bytes

    def make(self, descriptor: Descriptor) -> _Plan:
        d = descriptor
        if not isinstance(d, Factorization):
            raise self.refuse(d, "it is not a factorisation")
        t = d.arrays[0].element_type
        if t not in LETTERS:
            raise self.refuse(d, "it factors in f32, f64, c64 and c128")
        is_complex = t in (C64, C128)
        base = _COMPLEX_NAMES.get(d.kind, d.kind) if is_complex else d.kind
        name = f"cusolverDn{LETTERS[t]}{base}"
        parameters = None
        if d.kind == "gesvdj":
            parameters = c_void_p()
            self.functions.call("cusolverDnCreateGesvdjInfo", byref(parameters))
        work = c_int()
        arguments = self._asked(d)
        last = [parameters] if parameters is not None else []
        self.functions.call(f"{name}_bufferSize", self._handle, *arguments, byref(work), *last)
        size = -(-work.value * t.bits // 8 // 256) * 256 + 256
        if d.kind == "gesvd" and is_complex:
            size += 5 * min(_sizes(d)) * t.bits // 16
        turned: dict[int, int] = {}
        for n in _turned(d):
            turned[n] = size = -(-size // 256) * 256
            size += size_of(d.arrays[n]) // max(1, prod(d.arrays[0].dims[:-2]))
        if turned:
            self._helper.open()
            size = -(-size // 256) * 256 + HELPER_WORKSPACE
        return _Plan(name, work.value, size, turned, parameters)

    def call(self, stream: int, buffers: Sequence[int], descriptor: Descriptor) -> None:
        plan, d = self.plan(descriptor), descriptor
        assert isinstance(d, Factorization)
        count = prod(d.arrays[0].dims[:-2])
        if not plan.turned:
            self.copy(stream, buffers[d.operands], buffers[0], size_of(d.arrays[0]))
        scratch = self.scratch(stream, plan.bytes)
        steps = [size_of(a) // max(1, count) for a in d.arrays]
        with self._lock:
            self.functions.call("cusolverDnSetStream", self._handle, c_void_p(stream))
            for n in range(count):
                at = [address + n * step for address, step in zip(buffers, steps, strict=True)]
                inside = [scratch + plan.turned[k] if k in plan.turned else a for k, a in enumerate(at)]
                space = scratch + plan.bytes - HELPER_WORKSPACE
                if plan.turned:
                    self._turn(stream, space, d.arrays[0], at[0], inside[d.operands])
                self._run(d, plan, inside, scratch)
                for k in plan.turned:
                    lines, length = d.arrays[k].dims[-2:]
                    self._turn(stream, space, Array(d.arrays[k].element_type, (length, lines)), inside[k], at[k])

    def _turn(self, stream: int, scratch: int, matrix: Array, origin: int, target: int) -> None:
        self._helper.transpose(stream, scratch, matrix.element_type, origin, target, *matrix.dims[-2:])

    def _run(self, d: Factorization, plan: _Plan, at: list[int], scratch: int) -> None:
        arguments = self._arguments(d, at)
        pointer, length = c_void_p(scratch + 256), c_int(plan.work)
        info = c_void_p(at[-1] if d.arrays[-1].element_type.name == "s32" else scratch)
        if d.kind == "getrf":  # scratch memory stands before the pivots, and its length is not asked for
            *sizes, pivots = arguments
            self.functions.call(plan.name, self._handle, *sizes, pointer, pivots, info)
        elif d.kind == "gesvd":
            self.functions.call(plan.name, self._handle, *arguments, pointer, length, c_void_p(0), info)
        elif d.kind == "gesvdj":
            self.functions.call(plan.name, self._handle, *arguments, pointer, length, info, plan.parameters)
        else:
            self.functions.call(plan.name, self._handle, *arguments, pointer, length, info)

    def _asked(self, d: Factorization) -> list[Any]:
        """The arguments before the result of a query for scratch memory."""
        arguments = self._arguments(d, [0] * len(d.arrays))
        if d.kind == "gesvd":
            return arguments[2:4]
        return arguments[:-1] if d.kind in ("getrf", "geqrf") else arguments

    def _arguments(self, d: Factorization, at: Sequence[int]) -> list[Any]:
        """The arguments between the handle and the scratch memory."""
        m, n = _sizes(d)
        first = d.operands
        a, lead = c_void_p(at[first]), c_int(max(1, m))
        match d.kind:
            case "potrf":
                return [c_int(d.lower != d.columns), c_int(n), a, lead]
            case "getrf" | "geqrf":
                return [c_int(m), c_int(n), a, lead, c_void_p(at[first + 1])]
            case "orgqr":
                k = d.arrays[1].dims[-1]
                return [c_int(m), c_int(n), c_int(k), a, lead, c_void_p(at[1])]
            case "syevd":
                return [c_int(d.vectors), c_int(not d.lower), c_int(n), a, lead, c_void_p(at[first + 1])]
            case "gesvd":
                job = c_byte(ord(("A" if d.full else "S") if d.vectors else "N"))
                s, u, v = (c_void_p(at[first + k]) for k in (1, 2, 3))
                rows = n if d.full else min(m, n)
                return [job, job, c_int(m), c_int(n), a, lead, s, u, lead, v, c_int(max(1, rows))]
            case "gesvdj":
                s, u, v = (c_void_p(at[first + k]) for k in (1, 2, 3))
                sizes = c_int(m), c_int(n)
                return [c_int(d.vectors), c_int(not d.full), *sizes, a, lead, s, u, lead, v, c_int(max(1, n))]
        raise self.refuse(d, f"there is no {d.kind}")

    def close(self) -> None:
        for plan in self._plans.values():
            if plan.parameters is not None:
                self.functions.call("cusolverDnDestroyGesvdjInfo", plan.parameters)
        self._plans.clear()
        self._helper.close()
        if self._handle:
            self.functions.call("cusolverDnDestroy", self._handle)
            self._handle = c_void_p()


def _sizes(d: Factorization) -> tuple[int, int]:
    """Rows and columns of a matrix: stored by columns, the slowest dimension counts these."""
    outer, inner = d.arrays[d.operands].dims[-2:]
    return (inner, outer) if d.columns else (outer, inner)


def _turned(d: Factorization) -> list[int]:
    """The numbers of results that are matrices stored row after row."""
    if d.columns or d.kind == "potrf":
        return []
    rank = len(d.arrays[0].dims)
    return [n for n, a in enumerate(d.arrays) if n >= d.operands and len(a.dims) == rank]
