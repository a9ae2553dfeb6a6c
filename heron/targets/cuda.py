"""The GPUs of this machine as targets: the figures of a data file, replaced by those that the driver reports."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence

from heron.errors import HeronError
from heron.targets import libcuda
from heron.targets.target import Target

_NO_DRIVER = "sm_90"


def capability(ordinal: int = 0) -> tuple[int, int] | None:
    """Compute capability of a device, as (major, minor); None without a driver or without that device."""
    library = libcuda.library()
    if library is None or library.cuInit(0):
        return None
    major, minor = (_attribute(library, name, ordinal) for name in ("major", "minor"))
    return None if major is None or minor is None else (major, minor)


def machine(known: Sequence[str], ordinal: int = 0) -> str:
    """The data file for a device: of its compute capability, or the closest below; ``sm_90`` without a driver.

    Raises TGT008 for a device older than all of them, and for a number that no device has.
    """
    found = capability(ordinal)
    if found is None:
        _need_device(ordinal)
        return _NO_DRIVER
    numbers = sorted((int(name[3:]) for name in known if name.startswith("sm_")), reverse=True)
    number = found[0] * 10 + found[1]
    best = next((n for n in numbers if n <= number), None)
    if best is None:
        raise HeronError(
            "TGT008",
            f"GPU {ordinal} has compute capability {found[0]}.{found[1]}, which heron does not support",
            why=f"the oldest supported one is {numbers[-1] // 10}.{numbers[-1] % 10}",
        )
    return f"sm_{best}"


def _need_device(ordinal: int) -> None:
    library = libcuda.library()
    if library is None or ordinal == 0:
        return
    count = 0 if library.cuInit(0) else libcuda.read(library.cuDeviceGetCount) or 0
    raise no_such_gpu(ordinal, count)


def no_such_gpu(ordinal: int, count: int) -> HeronError:
    """The error for a GPU number that is not below `count`."""
    return HeronError("TGT008", f"there is no GPU number {ordinal}", why=f"the CUDA driver finds {count}")


def measured(base: Target, name: str, ordinal: int = 0) -> Target:
    """The target with the device's own sizes and rates, where the driver reports them."""
    library = libcuda.library()
    if library is None or capability(ordinal) is None:
        return dataclasses.replace(base, name=name)
    read = {key: _attribute(library, key, ordinal) or 0 for key in libcuda.ATTRIBUTES}
    clock, cores = read["clock_khz"] * 1000, read["cores"]
    scale = (clock * cores) / (base.clock_hz * base.cores) if clock and cores and base.clock_hz else 1.0
    facts: dict[str, object] = {
        "cores": cores,
        "clock_hz": clock,
        "memory_bytes": libcuda.read(library.cuDeviceTotalMem_v2, ordinal, kind=ctypes.c_size_t) or 0,
        "memory_bandwidth": 2 * read["memory_clock_khz"] * 1000 * read["bus_bits"] // 8,
        "grid": tuple(read[f"grid_{axis}"] for axis in "xyz"),
        "block": tuple(read[f"block_{axis}"] for axis in "xyz"),
        **{key: read[key] for key in _SAME},
    }
    told = {key: value for key, value in facts.items() if value and (not isinstance(value, tuple) or all(value))}
    flops = tuple((t, rate * scale) for t, rate in base.flops)
    text = f"{device_name(ordinal)}, GPU {ordinal} of this machine"
    return dataclasses.replace(base, name=name, description=text, flops=flops, **told)  # type: ignore[arg-type]


_SAME = (
    "l2_bytes threads_per_block threads_per_core blocks_per_core static_shared_bytes shared_bytes_per_core "
    "shared_bytes_per_block registers_per_core"
).split()


def device_name(ordinal: int = 0) -> str:
    """The driver's name of the device."""
    library = libcuda.library()
    text = ctypes.create_string_buffer(128)
    if library is None or library.cuDeviceGetName(text, len(text), ordinal):
        return f"GPU {ordinal}"
    return text.value.decode(errors="replace")


def _attribute(library: object, name: str, ordinal: int) -> int | None:
    return libcuda.read(library.cuDeviceGetAttribute, libcuda.ATTRIBUTES[name], ordinal)  # type: ignore[attr-defined]
