"""NCCL for ctypes: the functions that heron calls with their arguments, the constants, and which sums it does.

Source: nccl.h of NCCL 2.18 to 2.32. Communicators, streams and pointers are all ``c_void_p``. `library` gives NCCL,
`use` another one in its place.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from ctypes import Structure, c_char, c_int, c_size_t, c_void_p
from typing import Any

from heron.hlo.ir import types as t
from heron.hlo.ir.types import ElementType
from heron.records import dataclass
from heron.targets import libraries

# pointer or handle, int or enum, size
P, INT, N = c_void_p, c_int, c_size_t

ID_BYTES = 128
#: the oldest version whose calls heron makes as they are: the first of CUDA 12's that PyTorch came with
OLDEST = 21800


class UniqueId(Structure):
    """ncclUniqueId, passed by value."""

    _fields_ = [("internal", c_char * ID_BYTES)]


#: arguments of each function; each returns an ncclResult_t, 0 for success, but for those of `STRINGS`
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "ncclGetVersion": (P,),
    "ncclGetUniqueId": (P,),
    "ncclCommInitRank": (P, INT, UniqueId, INT),
    "ncclCommDestroy": (P,),
    "ncclCommAbort": (P,),
    "ncclCommGetAsyncError": (P, P),
    "ncclGetErrorString": (INT,),
    "ncclGetLastError": (P,),
    "ncclAllReduce": (P, P, N, INT, INT, P, P),
    "ncclReduceScatter": (P, P, N, INT, INT, P, P),
    "ncclAllGather": (P, P, N, INT, P, P),
    "ncclBroadcast": (P, P, N, INT, INT, P, P),
    "ncclSend": (P, N, INT, INT, P, P),
    "ncclRecv": (P, N, INT, INT, P, P),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
}
#: functions that return the address of a text
STRINGS = frozenset({"ncclGetErrorString", "ncclGetLastError"})

#: ncclResult_t
RESULTS = {
    1: "ncclUnhandledCudaError", 2: "ncclSystemError", 3: "ncclInternalError", 4: "ncclInvalidArgument",
    5: "ncclInvalidUsage", 6: "ncclRemoteError", 7: "ncclInProgress", 8: "ncclTimeout",
}  # fmt: skip
IN_PROGRESS = 7

#: ncclDataType_t of what is only moved
BYTES = 1
#: ncclDataType_t of the types whose sums, products and extrema NCCL computes as HLO means them. It adds complex numbers
#: as pairs. It rounds narrow floats after each step, those of 8 bits too coarsely; it has no integers of 16 bits.
DATA_TYPES: dict[ElementType, int] = {
    t.S8: 0, t.U8: 1, t.S32: 2, t.U32: 3, t.S64: 4, t.U64: 5, t.F16: 6, t.F32: 7, t.F64: 8, t.BF16: 9,
}  # fmt: skip
#: ncclRedOp_t by HLO opcode
SUM, PRODUCT, MAX, MIN = range(4)
_OPS = {"add": SUM, "multiply": PRODUCT, "maximum": MAX, "minimum": MIN}
#: what ops do to truth values, each a byte of 0 or 1
_OF_PRED = {"add": MAX, "or": MAX, "maximum": MAX, "multiply": MIN, "and": MIN, "minimum": MIN}
_PARTS = {t.C64: t.F32, t.C128: t.F64}


@dataclass(frozen=True, slots=True)
class Combination:
    """A reduction as NCCL does it. ``count``: of its elements in one of the program's."""

    data_type: int
    op: int
    count: int = 1


def combination(opcode: str | None, element: ElementType, exact: bool = True) -> Combination | None:
    """The reduction of NCCL for elements of that type by that op; None where it has none.

    With `exact` extrema of floats are left out: NCCL may lose a NaN.
    """
    if element is t.PRED:
        return Combination(DATA_TYPES[t.U8], _OF_PRED[opcode]) if opcode in _OF_PRED else None
    if element in _PARTS:
        return Combination(DATA_TYPES[_PARTS[element]], SUM, 2) if opcode == "add" else None
    if opcode not in _OPS or element not in DATA_TYPES:
        return None
    if exact and element.is_float and _OPS[opcode] in (MAX, MIN):
        return None
    return Combination(DATA_TYPES[element], _OPS[opcode])


_instead: Any = None


def library() -> Any:
    """NCCL with its functions declared, or the reason why it cannot be loaded. A missing function is a missing
    attribute."""
    if _instead is not None:
        return _instead
    loaded = libraries.load("nccl")
    if not isinstance(loaded, str):
        declare(loaded)
    return loaded


def declare(loaded: Any) -> None:
    """Tell ctypes the arguments and results of the functions."""
    for name, arguments in FUNCTIONS.items():
        function = getattr(loaded, name, None)
        if function is not None:
            function.argtypes, function.restype = arguments, c_void_p if name in STRINGS else c_int


@contextlib.contextmanager
def use(nccl: Any) -> Iterator[None]:
    """Use another library in place of NCCL, such as a simulated one in tests; a text is a reason for having none."""
    global _instead
    before, _instead = _instead, nccl
    try:
        yield
    finally:
        _instead = before


def text_of(function: Any, *arguments: Any) -> str:
    """The text that one of `STRINGS` returns."""
    address = function(*arguments)
    return ctypes.string_at(address).decode(errors="replace") if address else ""
