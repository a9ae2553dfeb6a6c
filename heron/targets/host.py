"""The machine heron runs on: its CPU level, caches and cores."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
from pathlib import Path

from heron.targets.target import Target, load

#: flags of processors with a full-width instruction for products of bf16
_BF16_PRODUCTS = {"avx512_bf16", "avx512bw", "avx512dq", "avx512vl"}
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def host() -> Target:
    """This machine's CPU, called ``cpu``: the highest x86-64 level it has, with its own cores, caches and memory."""
    cores = _cores()
    flags = _cpu_flags()
    for level in ("x86-64-v4", "x86-64-v3", "x86-64-v2"):
        base = load(level)
        if flags.issuperset(base.features):
            scale = cores / base.cores
            flops = tuple((name, rate * scale) for name, rate in base.flops)
            break
    else:
        base = Target("cpu", "cpu", platform.machine() or "host", "", vector_bits=128, l1_bytes=32768, l2_bytes=262144)
        flops = (("f32", 1e10 * cores), ("f64", 5e9 * cores))
    return dataclasses.replace(
        base,
        name="cpu",
        description=f"this machine: {cores} cores, {base.machine}",
        llvm_cpu="",
        cores=cores,
        flops=flops,
        floats=(("bf16", ("dot",)),) if flags >= _BF16_PRODUCTS else (),
        memory_bytes=_memory() or base.memory_bytes,
        l1_bytes=_cache(1) or base.l1_bytes,
        l2_bytes=_cache(2) or base.l2_bytes,
        l3_bytes=_cache(3) or base.l3_bytes,
    )


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _cpu_flags() -> set[str]:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("flags"):
                return set(line.partition(":")[2].split())
    return set()


def _memory() -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 0


def _cache(level: int) -> int:
    """Bytes of the data or unified cache of that level; 0 if the system does not report it."""
    with contextlib.suppress(OSError, ValueError):
        for index in _CACHES.iterdir():
            if not index.name.startswith("index") or (index / "level").read_text().strip() != str(level):
                continue
            if (index / "type").read_text().strip() in ("Data", "Unified"):
                text = (index / "size").read_text().strip()
                return int(text.rstrip("K")) * 1024 if text.endswith("K") else int(text)
    return 0
