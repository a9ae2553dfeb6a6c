"""The state of a launch in memory: read and written by native code and by Python, declared once."""

from __future__ import annotations

import ctypes

from heron.options import SIM_CHECKS

MAX_THREADS = 1024
LANES = 32
MAX_FINDINGS = 64
FINDING_WORDS = 8
#: accesses that the race check remembers of each granule of memory
CELL = 5
BARRIERS = 16

#: kinds of findings
(
    DIVERGED_BARRIER,
    EARLY_EXIT,
    DIVERGED_WARP,
    OWN_LANE,
    ABSENT_LANE,
    STEPS,
    OUT_OF_BOUNDS,
    MISALIGNED,
    RACE,
    UNINITIALISED,
) = range(1, 11)

#: what may be checked, with its bit
CHECKS = {name: 1 << n for n, name in enumerate(SIM_CHECKS)}

#: how an access touches memory: an atomic one reads and writes, or only writes
READ, WRITE, ATOMIC, ATOMIC_WRITE = range(4)

#: what a thread does: ready, at a barrier, meeting its warp, finished, asking who is active, at a partial barrier
READY, BLOCK_WAIT, WARP_WAIT, FINISHED, ACTIVE_WAIT, PART_WAIT = range(6)

_I32, _U32, _I64, _PTR = ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_void_p


class Row(ctypes.Structure):
    """Memory a kernel may access: an argument's buffer or a shared object.

    ``cells``: its shadow for races, or null; ``valid``: a byte for each of its bytes, 0 when never written, or null.
    """

    _fields_ = [("base", _I64), ("length", _I64), ("cells", _PTR), ("valid", _PTR), ("granule", _I64), ("shared", _I64)]


class Site(ctypes.Structure):
    """An access in the code. ``row``: which memory, -1 when the code does not tell."""

    _fields_ = [("size", _I64), ("kind", _I64), ("align", _I64), ("row", _I64)]


class State(ctypes.Structure):
    """One launch. ``tick`` counts synchronisations: an access is dated by it, so that order is a comparison."""

    _fields_ = [
        ("event", _I32),
        ("site", _I32),
        ("mask", _I32),
        ("count", _I32),
        ("current", _I32),
        ("threads", _I32),
        ("tick", _U32),
        ("launch_tick", _U32),
        ("block_tick", _U32),
        ("barrier_tick", _U32),
        ("checks", _I32),
        ("stopped", _I32),
        ("block", _I64),
        ("found", _I64),
        ("rows_count", _I64),
        ("rows", _PTR),
        ("sites", _PTR),
        ("block_ticks", _PTR),
        ("arena", _PTR),
        ("scratch", _I64 * 32),
        ("findings", _I64 * (MAX_FINDINGS * FINDING_WORDS)),
        ("arrived", _I32 * BARRIERS),
        ("states", _I32 * MAX_THREADS),
        ("places", _I32 * MAX_THREADS),
        ("masks", _I32 * MAX_THREADS),
        ("counts", _I32 * MAX_THREADS),
        ("members", _I32 * MAX_THREADS),
        ("handles", _PTR * MAX_THREADS),
        ("values", _I64 * MAX_THREADS),
        ("snapshot", _I64 * MAX_THREADS),
        #: known[t][u]: what lane u of t's warp did before that tick is done for t
        ("known", _I32 * (MAX_THREADS * LANES)),
    ]


def selected(checks: str) -> int:
    """The bits of ``""``, ``"all"`` or names of checks separated by commas."""
    names = CHECKS if checks == "all" else [name for name in checks.split(",") if name]
    return sum(CHECKS[name] for name in names)
