"""The matrix unit of x86 processors (AMX): a process asks Linux before its first use.

Source: Linux's documentation, arch/x86/xstate: ARCH_REQ_XCOMP_PERM for XTILEDATA.
"""

from __future__ import annotations

import ctypes
import platform

from heron.once import once

_ARCH_PRCTL, _ASK, _TILE_DATA = 158, 0x1023, 18


@once
def is_permitted() -> bool:
    """Whether this process may use the unit, if the processor has one; asks for it the first time."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK, _TILE_DATA) == 0
