"""The rows emitter: rows are reduced, and what is computed from a row and its reductions is stored, row by row.

As kernels of their own the reductions of a softmax or a layer norm read the array from memory once each. Here a row is
read once: a CPU finds it in the cache when it needs it again, a GPU has it in the registers of the row's threads.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.rowwise import Rows
from heron.codegen.emitters.base import entry, hero
from heron.codegen.emitters.rowwise import cpu, gpu
from heron.codegen.kernel import Kernel
from heron.targets import Target


@hero("rows")
class RowsEmitter:
    """See the module."""

    def emit(self, analysis: FusionAnalysis, name: str, target: Target) -> Kernel:
        rows = analysis.form
        assert isinstance(rows, Rows)
        frame = entry(analysis.fusion, rows.cut, name, target)
        return (gpu if frame.is_gpu else cpu).emit(frame, rows)
