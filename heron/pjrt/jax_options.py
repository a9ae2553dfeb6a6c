"""XLA's own compile options under JAX: passed over, but what JAX's CPU refuses of them is refused."""

from __future__ import annotations

import functools
from typing import Any

from heron.once import once
from heron.pjrt import compile_options, jax_name

#: a folder, which any text may be; the program asked about would be written there
_FOLDER = "xla_dump_to"
_NOTHING = "module @nothing { func.func public @main() { return } }"


def install() -> None:
    """Let options of programs be checked."""
    compile_options.XLA_CHECKS.append(_wrong)


def _wrong(overrides: dict[str, Any]) -> str | None:
    """The message of JAX's CPU about the options, if it has one."""
    return _said(tuple(sorted((n, type(v).__name__, v) for n, v in overrides.items() if n != _FOLDER)))


@once
def _own_cpu() -> Any:
    from jaxlib import xla_client

    return xla_client.make_cpu_client()


def _cpu() -> Any:
    """JAX's CPU: the one that is up, or where heron has its place one for these questions alone."""
    from jax._src import xla_bridge

    return _own_cpu() if jax_name.is_cpu() else xla_bridge._backends[jax_name.CPU]


@functools.lru_cache(maxsize=256)
def _said(overrides: tuple[tuple[str, str, Any], ...]) -> str | None:
    """By name, type and value: 1 equals True, but is refused where that is right."""
    try:
        from jaxlib import xla_client

        cpu = _cpu()
        devices = xla_client.DeviceList((cpu.devices()[0],))
        options = xla_client.CompileOptions()
        options.env_option_overrides = [(name, value) for name, _, value in overrides]
    except (ImportError, AttributeError, KeyError, TypeError):
        return None  # nobody to ask
    try:
        cpu.compile_and_load(_NOTHING, devices, options)
    except RuntimeError as error:
        return str(error).removeprefix("INVALID_ARGUMENT: ")
    return None
