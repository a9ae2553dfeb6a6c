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
from heron.codegen.emitters.sort import cpu, cpu_partial, cpu_radix, gpu
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.kernel import Kernel
from heron.targets import Target


def emit_sort(analysis: FusionAnalysis, name: str, target: Target) -> list[Kernel]:
    """The kernels of a sort, to be run in this order; equal steps are the same object.

    Those whose arguments are the outputs only find there what the one before left; on the CPU, the operands. Raises
    GEN133 for a fusion with other outputs, GEN134 for one that drops results of a sort of several kernels.
    """
    assert isinstance(analysis.form, Sort)
    sort = SortCode.of_form(analysis.form)
    if target.kind == "cpu":
        keys = keys_of(sort.i.to_apply, partial=True)
        if keys is not None and cpu_radix.is_worth(sort, keys):
            by_keys = cpu_partial if any(k.partial for k in keys) else cpu_radix
            return [by_keys.emit(sort, keys, name, target)]
        return [cpu.emit(sort, name, target)]
    return gpu.emit(sort, name, target)
