"""Receives programs from JAX to compile: with the Python functions they call, for topologies, in forked children."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator, Sequence
from typing import Any

from heron.errors import HeronError
from heron.pjrt import jax_name
from heron.pjrt.c_api import ending
from heron.pjrt.compile_options import CALLBACKS
from heron.runtime.host.callbacks import Filed

#: set in a forked child
_forked: list[bool] = []


def install() -> None:
    """Stand between JAX and its clients, for those of heron."""
    from jax._src import compiler
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]

    compile_any = compiler.backend_compile_and_load

    @functools.wraps(compile_any)
    def compile_ours(backend: Any, module: Any, devices: Any, options: Any, host_callbacks: Sequence[Any]) -> Any:
        if not jax_name.is_ours(backend):
            return compile_any(backend, module, devices, options, host_callbacks)
        if _forked:
            raise _in_a_child()
        ending.go_on()
        # functions go by number, since those of jaxlib's own are for its CPU alone
        with _with_numbers(options, [Filed(f, _Context()) for f in host_callbacks]):
            if isinstance(backend, _jax.CompileOnlyPyClient):
                # not by the client that is there: jaxlib would keep Python's lock while heron compiles
                return backend.compile(module, executable_devices=devices, compile_options=options)
            return compile_any(backend, module, devices, options, ())

    compiler.backend_compile_and_load = compile_ours
    _jax.Client.compile = _refusing(_jax.Client.compile)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: _forked.append(True))


def _refusing(compile_any: Any) -> Any:
    """`Client.compile`, by which a client that is there compiles for a topology: of heron's it would never return."""

    def compile_for_topology(self: Any, *args: Any, **options: Any) -> Any:
        if jax_name.is_ours(self):
            raise HeronError(
                "PJRT018",
                "a client of heron's does not compile for a topology",
                why="jaxlib keeps Python's lock while it waits for heron",
                hint="jax.jit(f, in_shardings=…).lower(…).compile() with devices of the topology",
            )
        return compile_any(self, *args, **options)

    return compile_for_topology


def _in_a_child() -> Exception:
    """jaxlib hands programs to threads, which stay in the parent: the child would wait for ever."""
    import jax

    error = HeronError(
        "PJRT027",
        "a forked child cannot compile",
        why="JAX's compile threads stayed in the parent process; programs compiled before still run",
        hint="start it with multiprocessing.get_context('spawn')",
    )
    return jax.errors.JaxRuntimeError(f"FAILED_PRECONDITION: {error}")


@contextlib.contextmanager
def _with_numbers(options: Any, functions: list[Filed]) -> Iterator[None]:
    """The options with the functions' numbers, which the compiled program keeps."""
    own = options.env_option_overrides
    if functions:
        options.env_option_overrides = [*own, (CALLBACKS, ",".join(str(f.number) for f in functions))]
    try:
        yield
    finally:
        options.env_option_overrides = own


class _Context:
    """The run as functions of `jax.experimental.buffer_callback` see it."""

    @property
    def stage(self) -> Any:
        from jax.experimental.buffer_callback import ExecutionStage

        return ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        """Raises JAX's error: there is none."""
        import jax

        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")
