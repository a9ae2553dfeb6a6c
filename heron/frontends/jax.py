"""JAX functions as modules: traced and lowered by JAX to StableHLO, then imported, with the user's Python lines.

JAX is imported when a function is lowered, and only its public parts are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.records import dataclass

Static = int | Sequence[int] | None
Names = str | Sequence[str] | None


def need_jax() -> Any:
    """The jax package. Raises JAX001 when it is not installed."""
    try:
        import jax
    except ImportError as error:
        raise HeronError(
            "JAX001",
            "JAX functions are lowered by JAX, which is not installed",
            why=str(error),
            hint="pip install 'heron[jax]'",
        ) from None
    return jax


@dataclass(frozen=True, slots=True)
class Lowering:
    """A lowered function: its module, and the trees of its results (a JAX treedef)."""

    module: Module
    out_tree: Any


def lower(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Static = None,
    static_argnames: Names = None,
    donate_argnums: Static = None,
    donate_argnames: Names = None,
    platform: str | None = None,
) -> Lowering:
    """Lower a function for arguments like these; every array argument is a parameter, used or not."""
    from heron.frontends.stablehlo.importer import parse

    jax = need_jax()
    jitted = jax.jit(
        function,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        donate_argnames=donate_argnames,
        keep_unused=True,
    )
    traced = jitted.trace(*args, **kwargs)
    lowered = traced.lower(lowering_platforms=None if platform is None else (platform,))
    name = getattr(function, "__name__", "function")
    return Lowering(parse(lowered.as_text(debug_info=True), f"<jax {name}>"), lowered.out_tree)


def from_jax(
    function: Callable[..., Any],
    *args: Any,
    static_argnums: Static = None,
    static_argnames: Names = None,
    donate_argnums: Static = None,
    platform: str | None = None,
    **kwargs: Any,
) -> Module:
    """The module of a JAX function for given arguments.

    Args:
        function: a function that `jax.jit` accepts.
        args, kwargs: arrays, or `jax.ShapeDtypeStruct`, or trees of them: only shapes and types count. Leaves become
            the entry's parameters, in order.
        static_argnums, static_argnames, donate_argnums: as for `jax.jit`.
        platform: lower for ``"cpu"`` or ``"cuda"``, whatever this machine has; by default for JAX's own default.

    Raises:
        HeronError: JAX001 when JAX is not installed, SHLO0xx for operations heron does not know. An exception
            of the function itself while JAX traces it is passed on unchanged.

    Example:
        >>> heron.from_jax(lambda x: jnp.tanh(x) @ x.T, np.ones((4, 8), np.float32))
    """
    return lower(
        function,
        args,
        kwargs,
        static_argnums=static_argnums,
        static_argnames=static_argnames,
        donate_argnums=donate_argnums,
        platform=platform,
    ).module
