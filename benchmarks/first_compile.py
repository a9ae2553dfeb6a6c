"""``python -m benchmarks.first_compile``: processor time of the first compile of a process, against XLA:CPU's.

Every figure is the median of fresh processes, which take turns: heron in a bare process, heron beside JAX (which has
loaded NumPy), XLA beside JAX. The program adds and takes a hyperbolic tangent. Code is not taken from files. Goal for
heron: 150 ms. ``--modules`` lists the modules that heron loads and never calls, the dearest first.
"""

from __future__ import annotations

import importlib.machinery
import json
import os
import statistics
import subprocess
import sys
import time
from types import FrameType, ModuleType
from typing import Any

import click

PROGRAM = """
HloModule small

ENTRY main {
  x = f32[64] parameter(0)
  y = f32[64] parameter(1)
  a = f32[64] add(x, y)
  ROOT t = f32[64] tanh(a)
}
"""


def child(kind: str) -> None:
    """Print the figures of this process: ``bare``, ``jax``, ``xla`` or ``modules``."""
    if kind == "modules":
        print(json.dumps(_unused()))
        return
    if kind in ("jax", "xla"):
        import jax

        jax.devices("cpu")
    start = time.process_time()
    if kind == "xla":
        import jax.numpy as jnp
        import numpy as np

        x = np.ones(64, np.float32)
        lowered = jax.jit(lambda x, y: jnp.tanh(x + y)).lower(x, x)
        begun = time.process_time()
        lowered.compile()
        print(json.dumps({"ms": (time.process_time() - begun) * 1e3}))
        return
    before = len(sys.modules)
    _compile()
    print(json.dumps({"ms": (time.process_time() - start) * 1e3, "modules": len(sys.modules) - before}))


def _compile() -> None:
    import heron

    heron.compile(heron.parse(PROGRAM))


def _unused() -> list[tuple[float, str]]:
    """Milliseconds of each module whose functions nothing calls once it is loaded."""
    own: dict[str, float] = {}
    stack: list[float] = []
    called = set[str]()

    def timed(execute: Any) -> Any:
        def exec_module(loader: Any, module: ModuleType) -> None:
            start = time.thread_time()
            stack.append(0.0)
            try:
                execute(loader, module)
            finally:
                spent = time.thread_time() - start
                own[module.__name__] = (spent - stack.pop()) * 1e3
                if stack:
                    stack[-1] += spent

        return exec_module

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and not stack:
            called.add(frame.f_code.co_filename)

    for loader in (importlib.machinery.SourceFileLoader, importlib.machinery.ExtensionFileLoader):
        loader.exec_module = timed(loader.exec_module)
    sys.setprofile(note)
    _compile()
    sys.setprofile(None)
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return sorted(((ms, name) for name, ms in own.items() if files.get(name) not in called), reverse=True)


def _run(kind: str) -> Any:
    env = {**os.environ, "HERON_CACHE": "0", "JAX_PLATFORMS": "cpu", "PYTHONDONTWRITEBYTECODE": ""}
    code = f"from benchmarks.first_compile import child; child({kind!r})"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@click.command(help=__doc__)
@click.option("--rounds", type=click.IntRange(min=1), default=7, show_default=True, help="Processes of each kind.")
@click.option("--modules", is_flag=True, help="List the modules that nothing calls instead.")
def main(rounds: int, modules: bool) -> None:
    """Measure."""
    if modules:
        unused = _run("modules")
        click.echo(f"{sum(ms for ms, _ in unused):.0f} ms in {len(unused)} modules")
        for ms, name in unused:
            click.echo(f"{ms:7.2f} ms  {name}")
        return
    kinds = {"bare": "heron", "jax": "heron beside JAX", "xla": "XLA:CPU beside JAX"}
    for kind in kinds:
        _run(kind)  # files of bytecode, and of the system's cache
    found = [{kind: _run(kind) for kind in kinds} for _ in range(rounds)]
    for kind, name in kinds.items():
        times = [f[kind]["ms"] for f in found]
        loaded = f", {found[0][kind]['modules']} modules" if kind != "xla" else ""
        click.echo(f"{name:20} {statistics.median(times):6.0f} ms, least {min(times):.0f}{loaded}")


if __name__ == "__main__":
    main()
