"""Runs a script in a process of its own whose JAX has the platform heron."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_HEAD = """
from heron.pjrt import jax_plugin
jax_plugin.initialize()
"""


def run(
    script: str, *, check: bool = True, timeout: float = 1200, head: str = _HEAD, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a Python text; its assertions fail the caller, with all it printed. `head` brings the platform up."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": path, "JAX_PLATFORMS": "heron", **environment}
    command = [sys.executable, "-c", head + script]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=timeout, check=False)
    if check:
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done
