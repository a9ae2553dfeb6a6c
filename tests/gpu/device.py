"""`Gpu`: what a test of tests/gpu gets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

#: seconds a program may take; a kernel that never ends must not end the tests, nor take much of a short time on a
#: device. A rehearsal compiles what it runs
LIMIT, REHEARSED = 60.0, 300.0


@dataclass
class Gpu:
    """A device to test on. ``tell`` keeps a fact with the test's result."""

    rehearse: bool
    prepared: str
    tell: Callable[[str, object], None]

    def check(self, name: str, *flags: str) -> None:
        """Run a program as tests/gpu/one.py does; fail with what is wrong."""
        if self.prepared:
            flags = (*flags, "--prepared", self.prepared)
        self.run("tests.gpu.one", name, *flags)

    def run(self, module: str, *arguments: str) -> None:
        """Run a module that prints what is wrong, in a process of its own; fail with that."""
        if self.rehearse:
            arguments = (*arguments, "--rehearse")
        command = [sys.executable, "-m", module, *arguments]
        here, limit = Path(__file__).parents[2], REHEARSED if self.rehearse else LIMIT
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here, timeout=limit)
        except subprocess.TimeoutExpired:
            pytest.fail(f"not done after {limit:.0f} seconds: python -m {' '.join(command[2:])}", pytrace=False)
        if "RUN044" in done.stdout and not self.rehearse:  # which kernel it was, if that was not found out
            steps = {**os.environ, "HERON_CUDA_STEPS": "1"}
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=here, timeout=limit, env=steps
            )
        line = done.stdout.strip().splitlines()[-1:]
        facts = json.loads(line[0]) if line and line[0].startswith("{") else {}
        self.tell("facts", facts)
        if done.returncode or not facts:
            said = "\n".join(facts.get("wrong") or [f"ended with {done.returncode}", done.stderr[-3000:]])
            pytest.fail(f"{said}\nagain: python -m {' '.join(command[2:])}", pytrace=False)
        if facts.get("skipped"):
            pytest.skip(facts["skipped"])
