"""Sorting: the kernels of a `sort`, or of a fusion around one, to be run one after another.

One on the CPU, in the output buffers, which hold the operands beforehand: a radix sort of long rows where the
comparator orders by keys (of floats in the partial order for rows without NaNs), else a merge sort, both stable. On the
GPU a bitonic network, not stable (a stable sort carries positions there, see the stable-sort-expander pass): its first
kernel reads, or computes, the operands and leaves sorted tiles in the outputs, further ones work there.
"""

from __future__ import annotations

from heron.analysis.fusion.analysis import FusionAnalysis
from heron.analysis.fusion.sort import Sort
from heron.analysis.fusion.sort_keys import keys_of
from heron.codegen.emitters.base import Emitter, Frame
from heron.codegen.emitters.sort import cpu, cpu_partial, cpu_radix, gpu
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.kernel import Kernel
from heron.targets import Target


class SortEmitter(Emitter[Sort]):
    """One kernel on the CPU, one or more on a GPU.

    Those whose arguments are the outputs only find there what the one before left; on the CPU, the operands. Equal
    steps are the same object.
    """

    kind = "sort"

    def frame(self, analysis: FusionAnalysis, name: str, target: Target) -> Frame:
        assert isinstance(analysis.form, Sort)
        sort = SortCode.of_form(analysis.form)
        return sort.frame(name, target) if target.is_gpu else sort.frame_in_place(name, target)

    def emit_cpu(self, frame: Frame, form: Sort) -> list[Kernel]:
        sort, keys = SortCode.of_form(form), keys_of(form.i.to_apply, partial=True)
        if keys is None or not cpu_radix.is_worth(sort, keys):
            return [cpu.emit(frame, sort)]
        by_keys = cpu_partial if any(k.partial for k in keys) else cpu_radix
        return [by_keys.emit(frame, sort, keys)]

    def emit_gpu(self, frame: Frame, form: Sort) -> list[Kernel]:
        """The kernels. Raises GEN134 where results are dropped of a sort that takes several."""
        return gpu.emit(frame, SortCode.of_form(form))
