"""Cost of instructions: work, bytes, recomputation by fusion, and the time on a machine.

`work` counts flops, `traffic` bytes at the least, `reuse` what fusion repeats; `kernel` puts them together for one
kernel, `estimate` turns that into seconds on a target, `program` sums up a scheduled module.
"""

from heron.analysis.cost.traffic import bytes_read, bytes_written
from heron.analysis.cost.work import computation_flops, element_flops, flops

__all__ = ["bytes_read", "bytes_written", "computation_flops", "element_flops", "flops"]
