"""heron in the place of JAX's CPU (``HERON_AS=cpu``): what asks for platforms by name finds the CPU."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pjrt.under_jax import run

_HEAD = """
import jax, jax.numpy as jnp, numpy as np
from jax import lax
x = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
"""
NAMES = """
[device] = jax.devices()
assert jax.default_backend() == device.platform == "cpu" and str(device) == "cpu:0"
assert repr(device) == "CpuDevice(id=0)"
assert "heron" in device.device_kind and "heron" in device.client.platform_version
assert jax.devices("cpu") == jax.devices("heron") == [device]
assert jax.jit(lambda x: x + 1)(x).devices() == {device}
assert jax.device_put(x, jax.devices("cpu")[0]).devices() == {device}
f = lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)
np.testing.assert_allclose(jax.jit(f)(x), np.sin(x), rtol=1e-6)
"""
PROGRAMS = """
square = x @ x.T + 3 * np.eye(3, dtype=np.float32)
np.testing.assert_allclose(jnp.linalg.inv(square) @ square, np.eye(3), atol=1e-5)  # LAPACK
np.testing.assert_allclose(jnp.linalg.eigvals(square).sum(), np.trace(square), rtol=1e-5)
np.testing.assert_allclose(jnp.fft.fft(x), np.fft.fft(x), atol=1e-5)
np.testing.assert_array_equal(jax.jit(lambda v: v + 1, donate_argnums=0)(jnp.asarray(x)), x + 1)

seen = []
jax.debug.callback(seen.append, 3)
jax.effects_barrier()
assert seen == [3]
np.testing.assert_allclose(jax.jit(lambda v: jax.pure_callback(np.cos, v, v))(x), np.cos(x), rtol=1e-6)
from jax.experimental.sparse.linalg import spsolve
diagonal = jnp.array([2.0, 4.0]), jnp.array([0, 1], jnp.int32), jnp.array([0, 1, 2], jnp.int32)
np.testing.assert_allclose(spsolve(*diagonal, jnp.ones(2)), [0.5, 0.25])

y = jnp.arange(4.0)
np.testing.assert_array_equal(np.from_dlpack(y), np.arange(4))
given = np.arange(4, dtype=np.float32)
assert jnp.from_dlpack(given).unsafe_buffer_pointer() == given.ctypes.data
assert jnp.from_dlpack(given, copy=True).unsafe_buffer_pointer() != given.ctypes.data

from jax import export
f = export.export(jax.jit(jnp.sin))(x)
assert f.platforms == ("cpu",)
np.testing.assert_allclose(f.call(x), np.sin(x), rtol=1e-6)
"""


def as_cpu(script: str, fresh: bool = False, **environment: str) -> Any:
    return run(_HEAD + script, head="", fresh=fresh, **{"HERON_AS": "cpu", "JAX_PLATFORMS": "", **environment})


@pytest.mark.parametrize("asked", ["", "cpu", "heron", "heron,cpu"])
def test_whatever_platform_is_asked_for(asked: str) -> None:
    as_cpu(NAMES, JAX_PLATFORMS=asked)


def test_programs() -> None:
    as_cpu(PROGRAMS, fresh=True)


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({"XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, 3),
        ({"JAX_NUM_CPU_DEVICES": "2", "XLA_FLAGS": "--xla_force_host_platform_device_count=3"}, 2),
        ({"HERON_DEVICES": "4", "JAX_NUM_CPU_DEVICES": "2"}, 4),
    ],
)
def test_as_many_devices_as_the_cpu_would_have(environment: dict[str, str], count: int) -> None:
    as_cpu(f"assert jax.device_count() == {count}, jax.devices()", **environment)


def test_nobody_gets_another_cpu_in_silence() -> None:
    tell = "try:\n    jax.devices()\nexcept RuntimeError as error:\n    print(error)"
    assert "PJRT026]: HERON_AS=tpu" in as_cpu(tell, HERON_AS="tpu").stdout
    assert "PJRT026]: HERON_AS=cpu with HERON_TARGET=cuda" in as_cpu(tell, HERON_TARGET="cuda").stdout
    assert "TGT001" in as_cpu(tell, HERON_TARGET="nonsense").stdout
    as_cpu("assert jax.devices()[0].device_kind == 'cpu'", HERON_AS="")


def test_options_of_xla_are_judged_by_jaxlib() -> None:
    as_cpu("""
jax.jit(jnp.sin, compiler_options={"xla_cpu_enable_fast_math": True})(x)
try:
    jax.jit(jnp.sin, compiler_options={"xla_nonsense": True})(x)
except jax.errors.JaxRuntimeError as error:
    assert "PJRT005" in str(error) and "No such compile option: 'xla_nonsense'" in str(error)
else:
    raise AssertionError
""")
