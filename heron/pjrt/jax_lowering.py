"""What JAX makes of its primitives for the platform heron: what it makes for "cpu", later registered rules included."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

from heron.pjrt.device import PLATFORM
from heron.runtime.library.callbacks import Filed

#: JAX modules whose rules emit calls of Python functions, and refuse a platform they do not know by name
_CALLING = frozenset({"jax._src.callback", "jax._src.checkify", "jax._src.debugging"})

#: the primitive of a call of a program made by `jax.export`
_CALL_EXPORTED = "call_exported"
#: primitives of `lax.platform_dependent`, and the parameter that names the platforms
_CHOOSING = {"platform_index": "platforms", "cond": "branches_platforms"}


def install() -> None:
    """Make JAX lower for heron as for its CPU."""
    from jax._src.interpreters import mlir

    mlir._platform_specific_lowerings[PLATFORM] = _LikeCpu()
    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)


class _LikeCpu(dict):
    """Rules by primitive: heron's own, else the CPU's."""

    def __missing__(self, primitive: Any) -> Any:
        entry = self.get(primitive)
        if entry is None:
            raise KeyError(primitive)
        return entry

    def __contains__(self, primitive: object) -> bool:
        return self.get(primitive) is not None

    def get(self, primitive: Any, default: Any = None) -> Any:
        from jax._src.interpreters import mlir

        own = super().get(primitive)
        if own is not None:
            return own
        entry = mlir._platform_specific_lowerings["cpu"].get(primitive)
        entry = entry or mlir._lowerings.get(primitive)
        if entry is None:
            return default
        if getattr(_plain(entry.rule), "__module__", "") in _CALLING:
            return dataclasses.replace(entry, rule=_calling_python(entry.rule))
        if primitive.name == _CALL_EXPORTED:
            return dataclasses.replace(entry, rule=_calling_exported(entry.rule))
        if primitive.name in _CHOOSING:
            return dataclasses.replace(entry, rule=_choosing(entry.rule, _CHOOSING[primitive.name]))
        return entry if primitive in mlir._platform_specific_lowerings["cpu"] else default


def _plain(rule: Any) -> Any:
    """The function under partial applications and wrappers."""
    while inner := getattr(rule, "func", None) or getattr(rule, "__wrapped__", None):
        rule = inner
    return rule


def _calling_python(rule: Any) -> Any:
    """A rule that sees the platform "cpu", and whose functions are filed with heron instead of jaxlib."""

    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        module = ctx.module_context
        like_cpu = module.replace(
            platforms=("cpu",), backend=SimpleNamespace(platform="cpu"), host_callbacks=_Functions(module)
        )
        inner = ctx.replace(module_context=like_cpu)
        result = rule(inner, *args, **params)
        if inner.tokens_out is not None:
            ctx.set_tokens_out(inner.tokens_out)
        return result

    return lower


def _calling_exported(rule: Any) -> Any:
    """Programs exported for the CPU run here too, unless they were exported for heron itself."""

    def lower(ctx: Any, *args: Any, exported: Any) -> Any:
        module = ctx.module_context
        if tuple(module.platforms) != (PLATFORM,) or PLATFORM in exported.platforms or "cpu" not in exported.platforms:
            return rule(ctx, *args, exported=exported)
        inner = ctx.replace(module_context=module.replace(platforms=("cpu",)))
        result = rule(inner, *args, exported=exported)
        if inner.tokens_out is not None:
            ctx.set_tokens_out(inner.tokens_out)
        return result

    return lower


def _choosing(rule: Any, choices: str) -> Any:
    """`lax.platform_dependent`: what is meant for the CPU is meant for heron, unless it says otherwise."""

    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        platforms = params.get(choices) or ()
        if platforms and not any(PLATFORM in names for names in platforms if names):
            params[choices] = tuple(names and _with_heron(names) for names in platforms)
        return rule(ctx, *args, **params)

    return lower


def _with_heron(names: tuple[str, ...]) -> tuple[str, ...]:
    return (*names, PLATFORM) if "cpu" in names else names


class _Functions(list):
    """The list rules append functions to, and take a function's number from as length - 1."""

    def __init__(self, module_context: Any) -> None:
        super().__init__()
        self._context, self._last = module_context, -1

    def append(self, function: Any) -> None:
        filed = Filed(function)
        self._context.add_keepalive(filed)
        self._last = filed.number

    def __len__(self) -> int:
        return self._last + 1
