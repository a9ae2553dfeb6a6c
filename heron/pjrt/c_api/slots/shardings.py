"""The extension for shardings: those of a program's parameters and results, as the bytes of OpShardings. JAX asks for
them when a program is for several devices."""

from __future__ import annotations

import ctypes
from typing import Any

from heron.pjrt import shardings
from heron.pjrt.c_api import handles
from heron.pjrt.c_api.slot import slot
from heron.pjrt.loaded import LoadedExecutable

_PREFIX = "PJRT_Shardings_PJRT_Executable"


@slot(f"{_PREFIX}_ParameterShardings")
def of_parameters(args: Any) -> None:
    executable: LoadedExecutable = handles.get(args.executable)
    args.num_parameters = len(executable.parameters)
    _give(args, executable.about.parameter_shardings or (shardings.REPLICATED,) * len(executable.parameters))


@slot(f"{_PREFIX}_OutputShardings")
def of_outputs(args: Any) -> None:
    """jaxlib wants one sharding, that of the empty tuple, for a program without results."""
    executable: LoadedExecutable = handles.get(args.executable)
    args.num_outputs = max(len(executable.outputs), 1)
    _give(args, executable.about.output_shardings or (shardings.REPLICATED,) * args.num_outputs)


def _give(args: Any, texts: tuple[str, ...]) -> None:
    """Arrays of bytes and of their sizes, which live as long as the executable."""
    data = [handles.text(shardings.as_bytes(text)) for text in texts]
    addresses, args.shardings = handles.pointers(at for _, at, _ in data)
    sizes, args.sharding_sizes = handles.array(ctypes.c_uint64, [size for *_, size in data])
    handle = handles.handle(args.executable)
    handle.keep = (*handle.keep, (data, addresses, sizes))
