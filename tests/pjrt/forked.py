"""Scripts in forks of a process that has imported JAX and heron: imports are most of a short script's time.

A fork begins where ``python -c`` would have come to after these imports: JAX has no backend yet, heron is not its
platform, and there is one thread. It ends as the interpreter does, but for the modules, which are not torn down.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import importlib
import os
import pkgutil
import signal
import sys
import threading
import traceback
import types
from collections.abc import Mapping
from functools import cache
from typing import Any

from tests.child import Child, serve

#: the variable of JAX's that a fork may be given: JAX read the others when it was imported
PLATFORMS = "JAX_PLATFORMS"
_DEATH_SIGNAL, _MEMORY = 1, 1 << 44
_PARTS = (
    *("analysis", "backends", "buffers", "codegen", "evaluator", "frontends", "hlo"),
    *("passes", "pjrt", "runtime", "targets", "trace"),
)


@cache
def process() -> Child:
    """The process with the imports, of this one."""
    return Child(__name__, limit=0)  # each script says its own


def can_run(environment: Mapping[str, str]) -> bool:
    """Whether a fork sees these variables as a new process does."""
    return all(name == PLATFORMS or not name.startswith("JAX_") for name in environment)


def _import_all() -> None:
    importlib.import_module("jax.experimental.compilation_cache.compilation_cache")
    for part in _PARTS:
        package = importlib.import_module(f"heron.{part}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".conformance" not in module.name and not module.name.endswith("__main__"):
                importlib.import_module(module.name)


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    """Run the job's script; its exit code, negative for a signal. Output goes to the files it names."""
    child = os.fork()
    if not child:
        os._exit(_run(job))
    return {"code": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}


def _run(job: dict[str, Any]) -> int:
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)  # no fork outlives the process
    for number, name in enumerate((os.devnull, job["output"], job["errors"])):
        file = os.open(name, os.O_RDWR)
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, closefd=False)
    os.environ.clear()
    os.environ.update(job["environment"])
    import jax

    jax.config.update("jax_platforms", os.environ.get(PLATFORMS) or None)
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    code = 1
    try:
        exec(compile(job["script"], "<string>", "exec"), main.__dict__)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(BaseException):
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    _import_all()
    serve(_answer, _MEMORY)
