"""XLA:CPU, where jaxlib is installed: runs HLO text or StableHLO."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from heron.errors import HeronError

#: compile fast: these programs run once, on a few numbers
QUICK = {"xla_backend_optimization_level": "0"}


@lru_cache(maxsize=1)
def _jax() -> Any:
    try:
        import jax
    except ImportError:
        raise HeronError(
            "CLI077", "XLA runs by jaxlib, which is not installed", hint="pip install 'heron[jax]'"
        ) from None
    a = np.eye(2, dtype=np.float32)
    jax.block_until_ready((jax.numpy.linalg.cholesky(a), jax.numpy.linalg.qr(a)))  # binds LAPACK
    return jax


def run(text: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs (a tuple flattened) of the module in `text`, compiled and run by XLA:CPU. Raises CLI077."""
    _jax()
    from jax._src.lib import _jax as lib
    from jaxlib import _hlo

    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return run_stablehlo(lib.mlir.hlo_to_stablehlo(proto), *arrays)


def run_stablehlo(source: str | bytes, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs of a StableHLO module, text or bytecode, compiled and run by XLA:CPU. Raises CLI077."""
    jax = _jax()
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax._src.lib import _jax as lib

    device = jax.devices("cpu")[0]
    with mlir.make_ir_context():
        module = mlir.ir.Module.parse(source)
        executable = device.client.compile_and_load(
            module, lib.DeviceList((device,)), compiler.get_compile_options(1, 1, env_options_overrides=QUICK)
        )
    with jax.enable_x64(True):  # inputs keep their 64-bit types
        outputs = executable.execute([jax.device_put(a, device) for a in arrays])
        return [np.asarray(o) for o in outputs]
