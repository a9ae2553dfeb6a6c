"""The driver, each call checked: a result that is no success is an error with the call and the result's name."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from heron.errors import HeronError
from heron.once import once
from heron.targets import libcuda

OLDEST = 12000  # CUDA 12.0: kernel nodes with the parameters heron uses


class CallFailed(HeronError):
    """A driver call that gave no success. ``result``: the CUresult; ``thunk``: the step that was awaited then, if one
    was."""

    def __init__(self, call: str, result: int) -> None:
        self.call, self.result = call, result
        self.thunk: Any = None
        name = libcuda.RESULTS.get(result, f"CUresult {result}")
        super().__init__("RUN042", f"the CUDA driver's {call} failed", why=name, hint=_HINTS.get(result))

    @property
    def is_fault(self) -> bool:
        """Whether a kernel did something wrong: nothing works in the device's context any more."""
        return self.result in libcuda.FAULTS


_HINTS = {
    46: "another process may hold the device exclusively: nvidia-smi",
    221: "the driver cannot compile PTX here: pip install nvidia-nvjitlink, so that programs are made of machine code",
    222: "the driver is older than the PTX: update it",
    701: "the kernel needs more registers or shared memory than the device has",
    802: "the GPU's fabric is not up yet: nvidia-smi",
    803: "the kernel module and libcuda are of different versions: restart the machine after an update",
}


class Driver:
    """libcuda's functions as attributes, by their names; each raises `CallFailed` (RUN042) unless it succeeds.

    Raises RUN030 where there is no GPU, RUN040 for a driver older than CUDA 12.0 or with functions missing.
    """

    def __init__(self, library: Any) -> None:
        self.library = library
        missing = [n for n in libcuda.FUNCTIONS if n not in libcuda.OPTIONAL and not hasattr(library, n)]
        self.version: int = libcuda.read(library.cuDriverGetVersion) or 0
        if self.version < OLDEST or missing:
            lacks = f"; it lacks {', '.join(missing[:3])}" if missing else ""
            raise HeronError(
                "RUN040",
                f"the CUDA driver is too old: it knows CUDA {_dotted(self.version)}",
                why=f"heron needs {_dotted(OLDEST)} or newer{lacks}",
                hint="update the NVIDIA driver (525 or newer)",
            )
        result = library.cuInit(0)
        self.devices: int = (libcuda.read(library.cuDeviceGetCount) or 0) if result == 0 else 0
        if not self.devices:
            name = libcuda.RESULTS.get(result, f"CUresult {result}") if result else "no device"
            raise no_gpu(f"the CUDA driver finds no GPU: {name}")
        for name in libcuda.FUNCTIONS:
            function = getattr(library, name, None)
            if function is not None:
                self.replace(name, function)

    def __getattr__(self, name: str) -> Callable[..., None]:
        raise HeronError(
            "RUN040",
            f"the CUDA driver has no function {name}",
            why=f"it knows CUDA {_dotted(self.version)}",
            hint="update the NVIDIA driver",
        )

    def replace(self, name: str, function: Callable[..., int]) -> None:
        """Call that function by the name from now on."""
        setattr(self, name, _checked(name, function))

    def has(self, *names: str) -> bool:
        """Whether the driver has all these functions."""
        return all(name in self.__dict__ for name in names)

    @property
    def has_conditional_nodes(self) -> bool:
        """Whether loops and branches may be nodes of a graph: since CUDA 12.4."""
        return self.version >= 12040 and self.has("cuGraphAddNode_v2", "cuGraphConditionalHandleCreate")

    def handle(self, create: Callable[..., None], *arguments: Any) -> int:
        """The handle that a creating function writes through its first argument."""
        made = ctypes.c_void_p()
        create(ctypes.byref(made), *arguments)
        return made.value or 0


def _checked(name: str, function: Any) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        if result := function(*arguments):
            raise CallFailed(name, result)

    return call


def _dotted(version: int) -> str:
    return f"{version // 1000}.{version % 1000 // 10}" if version else "unknown"


def no_gpu(why: str) -> HeronError:
    """The error of a program for a GPU where there is none."""
    return HeronError(
        "RUN030",
        "a program for an NVIDIA GPU cannot run here",
        why=why,
        hint="compile for sim:sm_90 to run the same kernels on the CPU, or save it: heron compile -o app.heron",
    )


_driver_of = once(Driver)


def driver() -> Driver:
    """The driver of this process, one for all threads. Raises RUN030 or RUN040 where programs cannot run."""
    library = libcuda.library()
    if library is None:
        raise no_gpu("no CUDA driver is installed (libcuda.so.1)")
    return _driver_of(library)
