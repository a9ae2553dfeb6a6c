"""Target: a machine, and how programs run there. The facts come from ``data/*.toml``; adding a machine adds a file."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
from pathlib import Path
from typing import Any, Literal

from heron.records import dataclass

_DATA = Path(__file__).parent / "data"


#: bits of a CPU's vectors from which on it does a part of a vector as fast as all of it (AVX-512)
MASKED_BITS = 512
#: threads of a warp, of every GPU that heron writes kernels for
WARP = 32


@dataclass(frozen=True, slots=True)
class Link:
    """A link between devices of one domain: devices of consecutive numbers, such as those of a host.

    Attributes:
        name: as people call it.
        devices: of a domain; 0 for any number.
        bandwidth: bytes a second of one device, in one direction.
        seconds: from one device to the next one, without data.
    """

    name: str
    devices: int
    bandwidth: int
    seconds: float


@dataclass(frozen=True)
class Target:
    """A machine. Sizes are bytes, rates per second, "core" is a CPU core or a GPU multiprocessor."""

    name: str
    kind: Literal["cpu", "gpu"]
    #: the data file of the figures: ``sm_90`` for ``sim:sm_90``
    machine: str
    description: str
    #: whether GPU kernels run on the CPU, one coroutine a GPU thread
    sim: bool = False
    #: LLVM's name of the processor; empty: ask LLVM for the host's
    llvm_cpu: str = ""
    features: tuple[str, ...] = ()

    cores: int = 1
    clock_hz: int = 0
    memory_bytes: int = 0
    memory_bandwidth: int = 0
    #: from one kernel's end to the next one's start
    launch_seconds: float = 0.0
    #: to other devices, the nearest first; the last one reaches all
    links: tuple[Link, ...] = (Link("link", 0, 10_000_000_000, 5e-6),)
    host_bandwidth: int = 10_000_000_000
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    vector_bits: int = 0
    vector_registers: int = 0
    #: operations a second by element type (``f32``, ``bf16``, …); pairs, so that a target is hashable
    flops: tuple[tuple[str, float], ...] = ()

    #: ops computed in a float type below f32 itself, by type (``f16``, ``bf16``, ``f8e5m2``, …); ``all``: every op
    floats: tuple[tuple[str, tuple[str, ...]], ...] = ()

    threads_per_block: int = 1
    threads_per_core: int = 1
    blocks_per_core: int = 1
    shared_bytes_per_core: int = 0
    shared_bytes_per_block: int = 0
    #: limit for a block that does not request more at launch; no kernel of heron does
    static_shared_bytes: int = 0
    #: machine code that a kernel may have: more of it is fetched from memory again and again
    code_bytes: int = 0
    #: whether matrix units read tiles from shared memory, so that what is computed for them is computed once
    shared_operands: bool = False
    #: whether products lie in a memory of their own, from which threads take them to registers
    tensor_memory: bool = False
    registers_per_core: int = 0
    registers_per_thread: int = 0
    grid: tuple[int, int, int] = (1, 1, 1)
    block: tuple[int, int, int] = (1, 1, 1)

    @property
    def has_masks(self) -> bool:
        """Whether it does a part of a vector as fast as all of it; a GPU does, thread by thread."""
        return self.is_gpu or self.vector_bits >= MASKED_BITS

    @property
    def is_gpu(self) -> bool:
        """Whether kernels are for a GPU, a simulated one included."""
        return self.kind == "gpu"

    def flops_of(self, element_type: str) -> float:
        """Peak operations a second on that element type; the f32 rate where the data has none, 0 if unsupported."""
        rates = dict(self.flops)
        return rates.get(element_type, rates.get("f32", 0.0))

    def computes_in(self, opcode: str, element_type: str) -> bool:
        """Whether that op works on a float type itself, not by way of f32."""
        ops = dict(self.floats).get(element_type, ())
        return element_type in ("f32", "f64") or "all" in ops or opcode in ops

    def to_json(self) -> dict[str, Any]:
        """All facts as plain JSON values."""
        return {**dataclasses.asdict(self), "flops": dict(self.flops), "floats": dict(self.floats)}


@functools.cache
def machines() -> tuple[str, ...]:
    """The names of the data files, in order of families and numbers."""

    def order(name: str) -> tuple[str, int]:
        family, _, number = name.rpartition("_")
        return (family, int(number)) if number.isdigit() else (name, 0)

    return tuple(sorted((p.stem for p in _DATA.glob("*.toml")), key=order))


@functools.cache
def load(machine: str) -> Target:
    """The target of a data file."""
    with open(_DATA / f"{machine}.toml", "rb") as file:
        data = tomllib.load(file)
    flops = tuple(sorted(data.pop("flops").items()))
    floats = tuple(sorted((t, tuple(ops)) for t, ops in data.pop("floats", {}).items()))
    rows = data.pop("links")
    facts: dict[str, Any] = {**data.pop("machine"), **data.pop("limits"), **data}
    lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    links = tuple(Link(row["name"], row.get("devices", 0), row["bandwidth"], row["seconds"]) for row in rows)
    return Target(**{**facts, **lists}, machine=machine, flops=flops, floats=floats, links=links)
