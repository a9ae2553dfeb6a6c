"""Jobs done in a child process, which may crash or hang: the job is answered for, and a new child does the next.

A child is a Python module that ends with ``serve(answer)``. Jobs and answers are dictionaries of JSON values; an answer
the child did not live to give is ``{"status": "crash"}`` or ``{"status": "timeout"}`` with a line of ``"error"``.
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

_LAST = 2000  # bytes of its errors that a dead child is quoted with


class Child:
    """A process that answers one job after the other, in at most `limit` seconds each."""

    def __init__(self, module: str, limit: float, *arguments: str) -> None:
        self.limit = limit
        self._command = [sys.executable, "-m", module, *arguments]
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = tempfile.TemporaryFile()

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """The child's answer."""
        process = self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
            line = self._line(process.stdout.fileno())
        except BrokenPipeError:
            line = b""
        if line is None:
            self.stop()
            return {"status": "timeout", "error": f"no answer in {self.limit:g} s"}
        if not line:
            code = process.wait()
            self._process = None
            return {"status": "crash", "error": f"ended with {code}: {self._said()}"}
        return json.loads(line)

    def stop(self) -> None:
        """End the process; the next job starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._errors.seek(0)
            self._errors.truncate()
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=self._errors)
        return self._process

    def _line(self, source: int) -> bytes | None:
        """The next line, empty when there is none any more, None when it does not come in time."""
        end, found = time.monotonic() + self.limit, b""
        while not found.endswith(b"\n"):
            ready, _, _ = select.select([source], [], [], max(end - time.monotonic(), 0))
            if not ready:
                return None
            more = os.read(source, 1 << 20)
            if not more:
                return b""
            found += more
        return found

    def _said(self) -> str:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - _LAST))
        return " ".join(self._errors.read().decode(errors="replace").split())


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]], memory: int = 4 << 30) -> None:
    """Answer jobs until there are no more, within `memory` bytes. What else is printed goes to standard error."""
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
