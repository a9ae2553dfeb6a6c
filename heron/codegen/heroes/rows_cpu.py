"""Kernels by rows on the CPU: from the second time on a row is in the cache."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.heroes.base import Entry
from heron.codegen.heroes.iteration import item_loop
from heron.codegen.heroes.reducers import reducer_of
from heron.codegen.heroes.rows_form import Rows
from heron.codegen.kernel import Kernel, Launch


def emit(frame: Entry, rows: Rows) -> Kernel:
    """The kernel that does a row a work item."""
    e, count = frame.e, rows.count

    def row(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        place = e.simplify(delinearize(item, rows.sizes))
        # variables of their own: what reads a reduction finds it by its index
        at = tuple(e.variable(v, 0, size - 1) for v, size in zip(e.index_values(place), rows.sizes, strict=True))
        for i in rows.reduces:
            reducer = reducer_of(i)

            def element(v: Index, sums: Sequence[SSAValue], i=i, reducer=reducer) -> list[SSAValue]:  # noqa: ANN001
                return reducer.step(e, sums, [e.value(a, (*at, *v)) for a in reducer.arrays])

            e.provide(i, at, reducer.finish(e, e.loop(rows.row_sizes, reducer.start(e), element)))
        outputs = list(carried)
        for n in rows.narrow:
            outputs[n] = e.insert(e.value(frame.fusion.outputs[n].instruction, at), outputs[n], at)

        def along(v: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            index = (*at, *v)
            values = [e.value(frame.fusion.outputs[n].instruction, index) for n in rows.wide]
            return [e.insert(value, t, index) for value, t in zip(values, tensors, strict=True)]

        stored = e.loop(rows.row_sizes, [outputs[n] for n in rows.wide], along) if rows.wide else []
        for n, t in zip(rows.wide, stored, strict=True):
            outputs[n] = t
        return outputs

    frame.outputs = item_loop(frame, count, 0, count, frame.outputs, row)
    names = ", ".join(i.name for i in rows.reduces)
    return frame.finish(Launch(work_items=count), "rows", {"form": f"rows of {rows.row}", "reduces": names})
