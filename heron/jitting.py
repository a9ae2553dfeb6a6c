"""``heron.jit``: a JAX function that heron compiles at its first call, and again for every new kind of arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.compiling import compile, recorded
from heron.errors import HeronError
from heron.frontends.jax import Lowering, Names, Static, lower, need_jax
from heron.records import dataclass
from heron.trace.why import Answer, about

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module
    from heron.options import Options
    from heron.runtime.executable import Executable
    from heron.trace import Trace


def jit(
    function: Callable[..., Any] | None = None,
    *,
    target: str = "cpu",
    options: Options | None = None,
    static_argnums: Static = None,
    static_argnames: Names = None,
    donate_argnums: Static = None,
    donate_argnames: Names = None,
) -> Any:
    """Compile a JAX function with heron; also a decorator, with or without arguments, of methods, too.

    Under a transformation of JAX, or in another function that is compiled, it is traced like any function.

    Args:
        function: what `jax.jit` takes: arrays and trees of arrays in and out.
        target: the machine, as for `heron.compile`.
        options: compile options, as for `heron.compile`.
        static_argnums, static_argnames, donate_argnums, donate_argnames: as for `jax.jit`; static arguments must be
            hashable. Donated arrays are never overwritten, the program only may reuse their memory.

    Returns:
        A `Jitted`: call it like the function; it gives NumPy arrays in the tree the function returns.

    Example:
        >>> @heron.jit
        ... def step(w, x):
        ...     return jnp.tanh(x @ w)
    """
    if function is None:
        return functools.partial(
            jit,
            target=target,
            options=options,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
        )
    donated = (donate_argnums, donate_argnames)
    return Jitted(function, target, options, static_argnums, static_argnames, donated)


@dataclass(frozen=True, slots=True)
class _Compiled:
    lowering: Lowering
    executable: Executable
    dtypes: tuple[np.dtype, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A compiled program and the record of its compile; as text the record's summary.

    Example:
        >>> told = step.explain(w, x)
        >>> print(told)
        >>> print(told.why("tanh.1").text)
    """

    executable: Executable
    trace: Trace

    def __str__(self) -> str:
        return self.trace.summary()

    def why(self, name: str) -> Answer:
        """The decisions about an instruction or a kernel; `heron.trace.why` has further questions, about `trace`.

        Raises CLI050 for a name that the record does not contain.
        """
        return about(self.trace, name)


class Jitted:
    """A function with its executables, one for each kind of arguments (trees, shapes, types, static values)."""

    def __init__(
        self,
        function: Callable[..., Any],
        target: str,
        options: Options | None,
        static_argnums: Static,
        static_argnames: Names,
        donated: tuple[Static, Names],
    ) -> None:
        self._function, self.target, self._options = function, target, options
        self._numbers, self._names = _static(function, static_argnums, static_argnames)
        self._donated = donated
        self._cache: dict[Hashable, _Compiled] = {}
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run, compiling first where needed. Raises RUN0xx as the executable does."""
        jax = need_jax()
        leaves, tree = jax.tree_util.tree_flatten(self._dynamic(args, kwargs))
        tracer = jax.core.Tracer
        for leaf in leaves if not self._numbers and not self._names else jax.tree_util.tree_leaves((args, kwargs)):
            if isinstance(leaf, tracer):
                return self._function(*args, **kwargs)
        compiled = self._find(args, kwargs, leaves, tree)
        arrays = [
            x if type(x) is np.ndarray and x.dtype is dtype else _array(x, dtype)
            for x, dtype in zip(leaves, compiled.dtypes, strict=True)
        ]
        return jax.tree_util.tree_unflatten(compiled.lowering.out_tree, compiled.executable.run(arrays))

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """As a method, with the instance as first argument: mark that static, or make its class a pytree."""
        return self if instance is None else MethodType(self, instance)

    def module(self, *args: Any, **kwargs: Any) -> Module:
        """The module these arguments lead to, before any pass."""
        return self._lower(args, kwargs).module

    def executable(self, *args: Any, **kwargs: Any) -> Executable:
        """The executable a call with these arguments runs: its kernels, memory, trace and stages."""
        return self._find(args, kwargs, *need_jax().tree_util.tree_flatten(self._dynamic(args, kwargs))).executable

    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """The kernels, memory and decisions of the program that a call with these arguments runs.

        Print it, let a notebook show it, or ask its `why`.
        """
        executable = self.executable(*args, **kwargs)
        return Explanation(executable, recorded(executable))

    # -- cache -------------------------------------------------------------------------------------------------------
    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], tree: Any) -> _Compiled:
        """The program compiled for such arguments; ``leaves``, ``tree``: those that are not static."""
        key = self._key(args, kwargs, leaves, tree)
        try:
            found = self._cache.get(key)
        except TypeError as error:
            raise HeronError("JAX002", "static arguments must be hashable", why=str(error)) from None
        if found is None:
            lowering = self._lower(args, kwargs)
            executable = compile(lowering.module, target=self.target, options=self._options)
            dtypes = tuple([s.element_type.dtype for s in executable.signature.parameters])
            found = self._cache[key] = _Compiled(lowering, executable, dtypes)
        return found

    def _lower(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Lowering:
        return lower(
            self._function,
            args,
            kwargs,
            static_argnums=self._numbers,
            static_argnames=self._names,
            donate_argnums=self._donated[0],
            donate_argnames=self._donated[1],
            platform="cpu" if self.target.startswith("cpu") else "cuda",
        )

    def _dynamic(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self._numbers and not self._names:
            return args, kwargs
        fixed = {n % len(args) for n in self._numbers if args and -len(args) <= n < len(args)}
        positional = tuple(a for n, a in enumerate(args) if n not in fixed)
        return positional, {k: v for k, v in kwargs.items() if k not in self._names}

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], tree: Any) -> Hashable:
        kinds = tuple([(x.dtype, x.shape, False) if type(x) is np.ndarray else _kind(x) for x in leaves])
        if not self._numbers and not self._names:
            return tree, kinds, _settings()
        static = [(type(args[n]), args[n]) for n in self._numbers if -len(args) <= n < len(args)]
        named = [(k, type(v), v) for k, v in sorted(kwargs.items()) if k in self._names]
        return tree, kinds, _settings(), len(args), tuple(static), tuple(named)


def _settings() -> Hashable:
    """JAX's settings that change what a function is lowered to."""
    config = need_jax().config
    return config.jax_enable_x64, config.jax_default_matmul_precision, config.jax_numpy_dtype_promotion


def _static(function: Callable[..., Any], numbers: Static, names: Names) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Static arguments by position and by name: an argument given either way counts for both."""
    positions = tuple(_listed(numbers, int))
    words = tuple(_listed(names, str))
    try:
        known = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return positions, words
    plain = [p.name for p in known if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    both = {*words, *(plain[n] for n in positions if -len(plain) <= n < len(plain))}
    places = {*positions, *(n for n, name in enumerate(plain) if name in words)}
    return tuple(sorted(places)), tuple(sorted(both))


def _listed(value: Any, one: type) -> Iterable[Any]:
    if value is None:
        return ()
    return (value,) if isinstance(value, one) else value


def _kind(leaf: Any) -> Hashable:
    """The properties of an argument that select the program: type, shape, and whether JAX may change the type."""
    if isinstance(leaf, (bool, int, float, complex)):
        return type(leaf)
    return getattr(leaf, "dtype", type(leaf)), np.shape(leaf), getattr(leaf, "weak_type", False)


def _array(leaf: Any, dtype: np.dtype) -> np.ndarray:
    """An argument as the array the program takes; JAX narrows 64-bit types unless told otherwise, and so does this."""
    jax = need_jax()
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf).astype(dtype, copy=False)
