"""XLA:CPU as a peer: programs compiled and run by the XLA in jaxlib, for comparisons. Needs the extra `jax`."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.records import dataclass

#: compile fast: for programs that run once, on a few numbers
QUICK = {"xla_backend_optimization_level": "0"}


def is_available() -> bool:
    """Whether jaxlib is installed; does not load it."""
    return importlib.util.find_spec("jaxlib") is not None and importlib.util.find_spec("jax") is not None


def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs (a tuple flattened) of the module in HLO `text`, compiled and run once.

    Raises CLI081 without jaxlib, and what jaxlib raises.
    """
    return run_stablehlo(stablehlo_of(text), *arrays)


def run_stablehlo(source: str | bytes, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs of a StableHLO module, text or bytecode, compiled and run once. Raises as `run` does."""
    made, device = _compiled(source, QUICK)[:2]
    jax = _jax()
    with jax.enable_x64(True):  # inputs keep their 64-bit types
        return [np.asarray(o) for o in made.execute([jax.device_put(a, device) for a in arrays])]


def stablehlo_of(text: str) -> Any:
    """HLO text as a StableHLO module. Raises CLI081 without jaxlib."""
    _jax()
    proto = import_module("jaxlib._hlo").hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return import_module("jax._src.lib")._jax.mlir.hlo_to_stablehlo(proto)


@dataclass(frozen=True, slots=True)
class XlaProgram:
    """A program compiled by XLA:CPU for one device, at its full optimisation.

    Attributes:
        version: of jaxlib.
        compile_seconds: of XLA alone, without the conversion of the text.
        temp_bytes: scratch memory of a run; None where this jaxlib does not tell.
    """

    version: str
    compile_seconds: float
    temp_bytes: int | None
    _executable: Any
    _device: Any

    @staticmethod
    def compile(module: Module) -> XlaProgram:
        """Compile `module`, printed as HLO text. Raises CLI081 without jaxlib, and where XLA refuses the program."""
        _jax()
        try:
            made, device, spent = _compiled(stablehlo_of(str(module)), {})
        except Exception as error:  # XLA has many kinds of them
            raise _refused(module, error) from None
        return XlaProgram(metadata.version("jaxlib"), spent, _temp_bytes(made), made, device)

    def place(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Arguments in parameter order as arrays of JAX on its CPU; 64-bit types are kept."""
        jax = _jax()
        with jax.enable_x64(True):
            return [jax.device_put(a, self._device) for a in arrays]

    def run(self, placed: Sequence[Any]) -> list[np.ndarray]:
        """Run on what `place` gave; the flat outputs, when they are finished."""
        return [np.asarray(o) for o in _jax().block_until_ready(self._executable.execute(list(placed)))]


@lru_cache(maxsize=1)
def _jax() -> Any:
    if not is_available():
        raise HeronError("CLI081", "jaxlib is not installed", hint="pip install 'heron[jax]'")
    import jax

    a = np.eye(2, dtype=np.float32)
    jax.block_until_ready((jax.numpy.linalg.cholesky(a), jax.numpy.linalg.qr(a)))  # binds LAPACK, which XLA calls
    return jax


def _compiled(source: str | bytes, flags: Mapping[str, str]) -> tuple[Any, Any, float]:
    """The executable of a StableHLO module, its device, and the seconds of the compile."""
    jax, lib = _jax(), import_module("jax._src.lib")._jax
    compiler, mlir = import_module("jax._src.compiler"), import_module("jax._src.interpreters.mlir")
    device = jax.devices("cpu")[0]
    options = compiler.get_compile_options(1, 1, env_options_overrides=dict(flags))
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(source)
        start = time.perf_counter()
        made = device.client.compile_and_load(module, lib.DeviceList((device,)), options)
        return made, device, time.perf_counter() - start


def _temp_bytes(executable: Any) -> int | None:
    try:
        return int(executable.get_compiled_memory_stats().temp_size_in_bytes)
    except Exception:  # not every version of jaxlib has it
        return None


def _refused(module: Module, error: Exception) -> HeronError:
    lines = str(error).strip().splitlines()
    return HeronError(
        "CLI081",
        f"XLA does not compile '{module.name}'",
        why=lines[0][:300] if lines else type(error).__name__,
        hint="a comparison needs a program that XLA:CPU takes, too",
    )
