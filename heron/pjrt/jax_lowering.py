"""Lowering rules of JAX's primitives for the platform heron: those for "cpu".

A module for heron alone is lowered as one for "cpu" from end to end, so that every rule, known here or not, finds the
platform it was written for. Rules somebody registers for "heron" come first.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from heron.pjrt import jax_name
from heron.pjrt.device import PLATFORM
from heron.pjrt.jax_name import CPU

#: whether the module being lowered in this thread is for heron
_FOR_HERON: ContextVar[bool] = ContextVar("for_heron", default=False)


def install() -> None:
    """Make JAX lower for heron as for its CPU."""
    from jax._src.interpreters import mlir

    rules = mlir._platform_specific_lowerings
    rules[PLATFORM] = _OfHeron()
    rules[CPU] = _OfCpu(rules[CPU])
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)
    mlir.lower_jaxpr_to_module = _as_for_cpu(mlir.lower_jaxpr_to_module)


def is_for_heron() -> bool:
    """Whether the module being lowered in this thread is for heron."""
    return _FOR_HERON.get() or jax_name.is_cpu()


def _as_for_cpu(lower_any: Any) -> Any:
    """JAX's lowering of a module, which takes heron for "cpu". Modules for several platforms keep their names."""

    @functools.wraps(lower_any)
    def lower(*args: Any, platforms: Any, backend: Any, **options: Any) -> Any:
        if tuple(platforms) != (PLATFORM,):
            return lower_any(*args, platforms=platforms, backend=backend, **options)
        token = _FOR_HERON.set(True)
        try:
            return lower_any(*args, platforms=(CPU,), backend=backend and _LikeCpu(backend), **options)
        finally:
            _FOR_HERON.reset(token)

    return lower


class _LikeCpu:
    """A client by the name "cpu"."""

    platform = CPU

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)


class _OfCpu(dict):
    """The CPU's rules by primitive. While a module is lowered for heron, heron's own come first."""

    def __contains__(self, primitive: object) -> bool:
        return super().__contains__(primitive) or (_FOR_HERON.get() and _own(primitive) is not None)

    def __getitem__(self, primitive: Any) -> Any:
        own = _own(primitive) if _FOR_HERON.get() else None
        return super().__getitem__(primitive) if own is None else own

    def get(self, primitive: Any, default: Any = None) -> Any:
        return self[primitive] if primitive in self else default


class _OfHeron(dict):
    """Heron's own rules; where a module is for other platforms too, the CPU's stand for those that are missing."""

    def __contains__(self, primitive: object) -> bool:
        return super().__contains__(primitive) or primitive in _rules()[CPU]

    def __missing__(self, primitive: Any) -> Any:
        return _rules()[CPU][primitive]

    def get(self, primitive: Any, default: Any = None) -> Any:
        return self[primitive] if primitive in self else default


def _rules() -> Any:
    from jax._src.interpreters import mlir

    return mlir._platform_specific_lowerings


def _own(primitive: Any) -> Any:
    """The rule for heron itself: one that was registered, or JAX's where a parameter names platforms."""
    found = dict.get(_rules()[PLATFORM], primitive)
    if found is not None or primitive.name not in _NAMING:
        return found
    from jax._src.interpreters import mlir

    entry = mlir._lowerings[primitive]
    return dataclasses.replace(entry, rule=_naming_cpu(entry.rule, *_NAMING[primitive.name]))


def _naming_cpu(rule: Any, parameter: str, renamed: Callable[[Any], Any]) -> Any:
    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        if params.get(parameter) is not None:
            params[parameter] = renamed(params[parameter])
        return rule(ctx, *args, **params)

    return lower


def _of_branches(branches: tuple[tuple[str, ...] | None, ...]) -> tuple[tuple[str, ...] | None, ...]:
    """Platforms of each branch of `lax.platform_dependent`: what is meant for the CPU is, unless one is for heron."""
    is_named = any(PLATFORM in names for names in branches if names)
    return tuple(_renamed(names) if names and is_named else names for names in branches)


def _of_exported(exported: Any) -> Any:
    is_named = PLATFORM in exported.platforms
    return dataclasses.replace(exported, platforms=_renamed(exported.platforms)) if is_named else exported


def _renamed(names: tuple[str, ...]) -> tuple[str, ...]:
    """heron by the name "cpu", and the CPU by one nobody asks for."""
    return tuple({PLATFORM: CPU, CPU: f"not {CPU}"}.get(name, name) for name in names)


#: primitives with names of platforms in a parameter, and how it reads in a module for heron
_NAMING: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "platform_index": ("platforms", _of_branches),
    "cond": ("branches_platforms", _of_branches),
    "call_exported": ("exported", _of_exported),
}
