"""heron as a platform of JAX: what the entry point `jax_plugins` names, and JAX calls once.

``JAX_PLATFORMS=heron python train.py`` runs a program on it. ``HERON_TARGET`` (cpu, sim:sm_90, …) says on what,
``HERON_DEVICES`` on how many devices. Where no platform is asked for, heron is there but not the default.
``HERON_AS=cpu`` has it take the place of JAX's CPU, for programs and libraries that ask for platforms by name.
"""

from __future__ import annotations

import os
import re
from typing import Any

from heron import targets
from heron.collector import collector_paused
from heron.errors import HeronError
from heron.once import once
from heron.pjrt import jax_name
from heron.pjrt.device import PLATFORM
from heron.pjrt.jax_name import CPU

#: environment variables the C interface reads, too
TARGET, DEVICES = "HERON_TARGET", "HERON_DEVICES"
#: below JAX's own CPU: whoever wants heron says so
_PRIORITY = -10


def initialize() -> None:
    """Register the platform; nothing the second time, and nothing when other platforms are asked for.

    A JAX this does not fit gets PJRT020 when the platform is used, or at once if it cannot even be told.
    """
    import jax

    name = os.environ.get(jax_name.VARIABLE)
    asked = (jax.config.jax_platforms or "").split(",")  # type: ignore[attr-defined]
    if asked != [""] and not asked.count(PLATFORM) and not (name and asked.count(CPU)):
        return
    try:
        _register()
    except HeronError as error:
        _refuse(error)
    except (ImportError, AttributeError, TypeError) as error:
        _refuse(
            HeronError(
                "PJRT020",
                f"this heron does not fit JAX {jax.__version__}",
                why=f"{type(error).__name__}: {error}",
                hint="it is made for JAX 0.10: pip install 'heron[jax]'",
            )
        )


def _refuse(error: HeronError) -> None:
    """Raise the error where the platform is used: JAX only logs what a plugin raises before."""

    def client() -> Any:
        raise error

    names = [PLATFORM, CPU] if os.environ.get(jax_name.VARIABLE) else [PLATFORM]
    try:
        from jax._src import xla_bridge

        for name in names:  # who wants heron for the CPU gets no other one
            xla_bridge.register_backend_factory(name, client, priority=_PRIORITY, fail_quietly=name == PLATFORM)
    except (ImportError, AttributeError, TypeError):
        raise error from None


@once
def _register() -> None:
    from jax._src import xla_bridge

    from heron.pjrt import (
        jax_arrays,
        jax_cache,
        jax_compile,
        jax_ffi,
        jax_lowering,
        jax_options,
        jax_partitioning,
    )

    name = jax_name.platform()
    for part in (jax_arrays, jax_compile, jax_ffi, jax_options, jax_partitioning):
        part.install()
    if jax_name.is_cpu():
        _take_the_cpu_s_place()
    else:
        jax_lowering.install()
        jax_cache.install()
    priority = _PRIORITY if name == PLATFORM else 0
    xla_bridge.register_backend_factory(
        name, _client, priority=priority, fail_quietly=name == PLATFORM, make_topology=_topology
    )


def _take_the_cpu_s_place() -> None:
    """Let "heron" be another word for "cpu", also where it was asked for."""
    import jax
    from jax._src import xla_bridge

    if _is_real_gpu():
        raise HeronError(
            "PJRT026",
            f"{jax_name.VARIABLE}={CPU} with {TARGET}={os.environ[TARGET]}: the CPU's name is for arrays in the host's"
            " memory",
            hint=f"JAX_PLATFORMS={PLATFORM} for a GPU",
        )
    xla_bridge._alias_to_platforms[PLATFORM] = [CPU]
    asked = jax.config.jax_platforms  # type: ignore[attr-defined]
    if asked:
        names = dict.fromkeys(CPU if n == PLATFORM else n for n in asked.split(","))
        jax.config.update("jax_platforms", ",".join(names))


def _number_of_devices() -> dict[str, int]:
    """As many as JAX's CPU would have, unless heron itself is told."""
    from jax._src import xla_bridge

    if os.environ.get(DEVICES):
        return {}
    if (asked := xla_bridge.num_cpu_devices.value) >= 0:
        return {"devices": asked}
    flag = re.findall(r"--xla_force_host_platform_device_count=(\d+)", os.environ.get("XLA_FLAGS", ""))
    return {"devices": int(flag[-1])} if flag else {}


@once
def _loaded() -> Any:
    """The C interface, known to jaxlib. Raises PJRT021 when jaxlib will not have it."""
    from jaxlib import xla_client

    from heron.pjrt import c_api

    capsule = c_api.capsule()
    try:
        if not xla_client.pjrt_plugin_loaded(PLATFORM):
            xla_client.load_pjrt_plugin_with_c_api(PLATFORM, capsule)
        if not xla_client.pjrt_plugin_initialized(PLATFORM):
            xla_client.initialize_pjrt_plugin(PLATFORM)
    except Exception as error:
        raise _misfit(error) from error
    return capsule


def _misfit(error: Exception) -> HeronError:
    from importlib.metadata import version

    from heron.pjrt.c_api import abi

    major, minor = abi.version()
    return HeronError(
        "PJRT021",
        f"jaxlib {version('jaxlib')} rejects heron's PJRT interface {major}.{minor}",
        why=str(error),
        hint="install the jaxlib this heron names: pip install 'heron[jax]'",
    )


@collector_paused()
def _client() -> Any:
    from jax._src import distributed
    from jaxlib import xla_client

    from heron.pjrt.c_api.api import layouts_hidden

    state, options = distributed.global_state, _options()
    if state.client is not None and (state.num_processes or 1) > 1:
        options |= {"node_id": state.process_id, "num_nodes": state.num_processes}
    _loaded()
    with layouts_hidden():
        client = xla_client.make_c_api_client(PLATFORM, options, state.client)
    if not jax_name.is_cpu():
        _have_cpu_too()
    return client


def _options() -> dict[str, Any]:
    """The options of the C interface that are not in the environment."""
    name = {"platform": CPU} if jax_name.is_cpu() else {}
    return name if _is_real_gpu() else {**name, **_number_of_devices()}


def _is_real_gpu() -> bool:
    target = targets.get(os.environ.get(TARGET) or CPU)
    return target.is_gpu and not target.sim


def _have_cpu_too() -> None:
    """Bring JAX's CPU up where heron alone was asked for: callbacks get their arguments as arrays there."""
    import jax
    from jax._src import xla_bridge

    if jax.config.jax_platforms == PLATFORM and "cpu" not in xla_bridge._backends:  # type: ignore[attr-defined]
        xla_bridge._backends["cpu"] = xla_bridge._init_backend("cpu")


def _topology(name: str = "", **options: Any) -> Any:
    from jaxlib import xla_client

    return xla_client.make_c_api_device_topology(_loaded(), name, **_options(), **options)
