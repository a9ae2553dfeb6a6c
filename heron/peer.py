"""XLA:CPU as a peer: the same program compiled and run by the XLA in jaxlib, for comparisons. Needs the extra `jax`."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, metadata
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.module import Module


def is_available() -> bool:
    """Whether jaxlib is installed; does not load it."""
    return importlib.util.find_spec("jaxlib") is not None and importlib.util.find_spec("jax") is not None


@dataclass(frozen=True, slots=True)
class XlaProgram:
    """A program compiled by XLA:CPU for one device.

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
        jax, lib = _jax(), import_module("jax._src.lib")._jax
        compiler, mlir = import_module("jax._src.compiler"), import_module("jax._src.interpreters.mlir")
        device = jax.devices("cpu")[0]
        try:
            options = compiler.get_compile_options(1, 1)
            with mlir.make_ir_context():
                source = mlir.ir.Module.parse(lib.mlir.hlo_to_stablehlo(_proto(module)))
                start = time.perf_counter()
                made = device.client.compile_and_load(source, lib.DeviceList((device,)), options)
                spent = time.perf_counter() - start
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


def _proto(module: Module) -> bytes:
    return import_module("jaxlib._hlo").hlo_module_from_text(str(module)).as_serialized_hlo_module_proto()


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
