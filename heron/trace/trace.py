"""Trace: the record of one compile, with its tables and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heron.trace import store
from heron.trace.record import Record
from heron.trace.summary import summary


class Trace(Record):
    """The record of one compile. All fields are plain data and survive `save` and `load`."""

    def summary(self) -> str:
        """Tables a person reads: kernels by emitter, other steps, memory, time by stage and by pass."""
        return summary(self)

    def to_json(self) -> dict[str, Any]:
        """All facts as plain JSON values."""
        return store.to_json(self)

    def save(self, path: str | Path) -> None:
        """Write the trace as JSON text, whole or not at all. Raises CLI012 (disk full, no permission…)."""
        store.save(self, path)

    @staticmethod
    def load(path: str | Path) -> Trace:
        """Read a saved trace. Raises CLI010 when it cannot be read and CLI013 when it is no trace."""
        trace = Trace()
        store.load(trace, path)
        return trace
