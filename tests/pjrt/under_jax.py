"""Runs a script in a process whose JAX has the platform heron."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.pjrt import forked

ROOT = Path(__file__).parent.parent.parent

_HEAD = """
from heron.pjrt import jax_plugin
jax_plugin.initialize()
"""


def run(
    script: str,
    *,
    check: bool = True,
    timeout: float = 1200,
    head: str = _HEAD,
    fresh: bool = False,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a Python text; its assertions fail the caller, with all it printed.

    Args:
        head: brings the platform up.
        fresh: an interpreter of its own, for scripts about how a process begins or ends; the others are forks.
    """
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "heron", **environment}
    if fresh or not forked.can_run(env):
        command = [sys.executable, "-c", head + script]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout, check=False)
    else:
        done = _fork(head + script, env, timeout)
    if check:
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done


def _fork(script: str, environment: dict[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
        files = {"output": output.name, "errors": errors.name}
        process = forked.process()
        process.limit = timeout
        answer = process.ask({"script": script, "environment": environment, **files})
        said = [Path(name).read_text(errors="replace") for name in files.values()]
        assert "code" in answer, f"{answer}\n{said[0][-3000:]}\n{said[1][-6000:]}"
        return subprocess.CompletedProcess(script, answer["code"], *said)
