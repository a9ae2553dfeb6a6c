"""A compiled GPU program as plain data: what is saved in a file, and what an executable loads into a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from heron.records import dataclass
from heron.runtime.cuda.plan import Outputs
from heron.runtime.thunks import Sequence

Dims = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class KernelEntry:
    """The launch of one kernel.

    ``image``: which of the program's images has it, under ``symbol``. ``outputs``: the arguments it writes. ``shared``:
    bytes of shared memory asked for at launch. ``zeros``: pointers it takes after its arguments and does not use;
    the first is to ``scratch`` bytes, if any, of the launch's own. ``story``: its HLO, for messages.
    """

    name: str
    grid: Dims
    block: Dims
    outputs: frozenset[int]
    image: int = 0
    symbol: str = ""
    shared: int = 0
    zeros: int = 0
    scratch: int = 0
    story: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """Code of some kernels, made for ``sm``: machine code (a cubin), empty where no assembler was, and PTX."""

    code: bytes
    sm: str
    ptx: bytes = b""


@dataclass(frozen=True, slots=True)
class GpuProgram:
    """Thunks, kernels and their code. ``sm``: the machine the program was made for."""

    thunks: Sequence
    kernels: Mapping[str, KernelEntry]
    images: tuple[Image, ...]
    sm: str
    graphs: bool = True
    outputs: Outputs = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", {name: k.outputs for name, k in self.kernels.items()})
