"""What a custom call's backend_config says, and JAX's names of LAPACK and cuSOLVER routines in its target."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction

#: which row the row swaps of an LU factorisation bring to each place: (swaps, counted from 0) → permutation
PIVOTS = "cu_lu_pivots_to_permutation"
#: routines of LAPACK and cuSOLVER that heron's own code computes, whatever order their arrays lie in. Any other target
#: may be somebody's handler, which gets addresses: of arrays in the layouts that the call states
IN_ANY_ORDER = frozenset((*"potrf trsm getrf geqrf orgqr ungqr syevd heevd gesdd gesvd gesvdj gesvdp".split(), PIVOTS))
#: JAX's names for calls of Python functions: those that take arrays, and those that take the program's own memory
PYTHON = frozenset(
    f"xla_ffi_{kind}python_{machine}_callback" for kind in ("", "partitioned_") for machine in ("cpu", "gpu")
)
PYTHON_ON_BUFFERS = "xla_buffer_python_cpu_callback"


def calls_python(i: Instruction) -> bool:
    """Whether an instruction calls a Python function, by the number its options have as ``index``."""
    return i.opcode == "custom-call" and (i.custom_call_target in PYTHON or i.custom_call_target == PYTHON_ON_BUFFERS)


def options(i: Instruction) -> dict[str, Any]:
    """The call's backend_config, ``{uplo = 76 : ui8, lower = true}``: integers as int, flags as bool."""
    return parse_options(str(i.extras.get("backend_config", "")))


def parse_options(text: str) -> dict[str, Any]:
    """`options` of a backend_config's text."""
    found: dict[str, Any] = {}
    for name, value in re.findall(r"(\w+)\s*=\s*([^,}\s]+)", text):
        if value in ("true", "false"):
            found[name] = value == "true"
        elif re.fullmatch(r"-?\d+", value):
            found[name] = int(value)
    return found


def letter(given: dict[str, Any], name: str, default: str) -> str:
    """A LAPACK option given as a character's number."""
    return chr(given[name]) if name in given else default


def is_lower(given: dict[str, Any]) -> bool:
    """Which triangle: LAPACK's ``uplo`` or cuSOLVER's ``lower``."""
    return given["lower"] if "lower" in given else letter(given, "uplo", "L") == "L"


def routine(target: str) -> str:
    """The routine a target names, without library and type letter: ``lapack_spotrf_ffi`` → ``potrf``; else itself."""
    match = re.fullmatch(r"(?:lapack_[sdcz]|cusolver_)(\w+)_ffi", target)
    return match[1] if match else target
