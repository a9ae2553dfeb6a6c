"""The recording of a compile: begun before it, finished after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.view.record.facts import keep

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation
    from heron.trace import Trace
    from heron.view.record.versions import Versions


class Recording:
    """The facts that every saved trace has; with ``full`` also the program after every pass, and all kernels' texts."""

    def __init__(self, trace: Trace, full: bool = False) -> None:
        self._trace = trace
        self._versions: Versions | None = None
        if full:
            from heron.view.record.versions import Versions

            self._versions = Versions(trace)

    def finish(self, compilation: Compilation) -> None:
        """Write it into the trace."""
        keep(self._trace, compilation)
        if self._versions is not None:
            from heron.view.record.kernels import texts

            self._trace.versions = self._versions.to_json()
            self._trace.texts = list(texts(compilation))
