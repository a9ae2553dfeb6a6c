"""Sorting floats in the partial order on the CPU: by their bits where a row has no NaN, else by asking the comparator.

Without NaNs that order is one by keys, where both zeros have the same: a radix sort gives what any stable sort does.
With them, no order is promised by the comparator; the result of such a row is that of a merge sort.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from heron.analysis.fusion.sort_keys import Key
from heron.analysis.indexing.expr import Expr
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import for_
from heron.codegen.emitters.sort.code import SortCode
from heron.codegen.emitters.sort.cpu import MergedRow
from heron.codegen.emitters.sort.cpu_radix import RadixRow
from heron.codegen.emitters.sort.keys import emit_is_nan
from heron.codegen.ir.types import I64, INDEX
from heron.codegen.kernel import Kernel, Launch


def emit(frame: Frame, sort: SortCode, keys: Sequence[Key]) -> Kernel:
    """The kernel. A work item is a row."""
    b = frame.e.b

    def row(item: Expr, tensors: Sequence[SSAValue], scratch: Sequence[SSAValue]) -> list[SSAValue]:
        scratch = scratch or sort.scratch(frame)
        found = _nans(sort, keys, frame, item, tensors)
        # loops of one round or none
        merged = b.op(arith.IndexCastOp, b.op(arith.ExtUIOp, found, type=I64), type=INDEX)
        others = b.op(arith.SubiOp, b.integer(1), merged)
        by_bits = RadixRow(sort, keys, frame, item, scratch)
        tensors = for_(frame, b.integer(0), others, tensors, lambda _, t: by_bits.sort(t))
        by_asking = MergedRow(sort, frame, item, scratch)
        return for_(frame, b.integer(0), merged, tensors, lambda _, t: by_asking.sort(t))

    sort.each_row(frame, row)
    bits = " and ".join(str(k.bits) for k in keys)
    form = f"radix sort of {sort.length} by {bits} bits, merge sort of rows with NaNs"
    return frame.finish(Launch(work_items=sort.rows), "sort", {"form": form})


def _nans(sort: SortCode, keys: Sequence[Key], frame: Frame, item: Expr, tensors: Sequence[SSAValue]) -> SSAValue:
    """Whether a row has an element without a place in the order."""
    e, b = frame.e, frame.e.b

    def look(position: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        index = sort.index(frame, item, e.variable(position, 0, sort.length - 1))
        element = [e.extract(t, index) for t in tensors]
        (found,) = carried
        for key in keys:
            if key.partial:
                found = b.op(arith.OrIOp, found, emit_is_nan(key, e, sort.i.to_apply, element))
        return [found]

    zero = b.integer(0)
    return for_(frame, zero, b.integer(sort.length), [b.cmpi("ne", zero, zero)], look)[0]
