"""Every module of the language can be the first one imported."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import heron.hlo

PROGRAM = """
import sys, importlib
for name in sys.argv[1:]:
    for loaded in [m for m in sys.modules if m.startswith("heron")]:
        del sys.modules[loaded]
    importlib.import_module(name)
"""


def test_any_module_may_come_first() -> None:
    names = [f"heron.hlo.{m.name}" for m in pkgutil.iter_modules(heron.hlo.__path__)]
    done = subprocess.run([sys.executable, "-c", PROGRAM, *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-600:]
