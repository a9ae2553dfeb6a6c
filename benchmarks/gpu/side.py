"""A side of the comparison: a process that is begun again when it ends, and ended when it takes too long."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from benchmarks.compare import Refused, Worker

#: seconds a request may take: a kernel that never ends must not end the measurement, nor take much of its time
LIMIT = 90.0


class Side:
    """heron, XLA or PyTorch, as `benchmarks.gpu.worker` has them."""

    def __init__(self, *arguments: str, log: Path | None = None) -> None:
        """``log``: a file for what the process writes to its standard error."""
        self.arguments, self._log = arguments, log
        self._worker: Worker | None = None

    def ask(self, **request: Any) -> dict[str, Any]:
        """The answer to one request. Raises `Refused` with the reason; a process that ended is a new one next time."""
        if self._worker is None:
            faults = {"PYTHONFAULTHANDLER": "1"}
            self._worker = Worker(*self.arguments, module="benchmarks.gpu.worker", environment=faults, log=self._log)
        clock = threading.Timer(LIMIT, self._worker.process.kill)
        clock.start()
        try:
            return self._worker.ask(**request)
        except Refused as refusal:
            if self._worker.process.poll() is not None or "RUN044" in str(refusal):
                self.close()
            raise
        finally:
            clock.cancel()

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None
