"""The rows emitter (CPU): rows are reduced, and what is computed from a row and its reductions is stored, row by row.

A softmax or a layer norm takes a few reductions of each row, one needing the other, and a loop over the row at the end.
As kernels of their own they read the array from memory once each; here a row is in the cache from the second time on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Const, Dim, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.heroes.base import Entry, Fusion, entry, hero, load, row_major
from heron.codegen.heroes.iteration import item_loop
from heron.codegen.heroes.reducers import reducer_of
from heron.codegen.kernel import Kernel, Launch
from heron.codegen.partition import Partition, partition
from heron.hlo.instruction import Instruction
from heron.targets import Target

#: elements a row must have: shorter ones are cheap to sum where the sum is needed
MIN_ROW = 64


@dataclass(frozen=True, slots=True)
class Rows:
    """A fusion by rows: of arrays of ``dims`` the first ``kept`` dimensions number the rows.

    ``reduces`` of rows, each after those it needs; numbers of the outputs stored along the row (``wide``) and once a
    row (``narrow``). ``cut``: its functions, none of which needs a reduction.
    """

    dims: tuple[int, ...]
    kept: int
    reduces: tuple[Instruction, ...]
    wide: tuple[int, ...]
    narrow: tuple[int, ...]
    cut: Partition


def rows_of(fusion: Fusion) -> Rows | None:
    """The fusion by rows, or None: when nothing along a row needs a reduction of it, too."""
    order = fusion.computation.post_order()
    reduces = tuple(i for i in order if i.opcode == "reduce")
    if not reduces or any(not i.shape.is_array or not reducer_of(i).opcode for i in reduces):
        return None
    dims = reduces[0].operands[0].shape.dims
    kept = reduces[0].shape.rank
    row = tuple(range(kept, len(dims)))
    if any(i.operands[0].shape.dims != dims or tuple(sorted(i.dimensions)) != row for i in reduces):
        return None
    wide = tuple(n for n, o in enumerate(fusion.outputs) if o.shape.dims == dims)
    narrow = tuple(n for n, o in enumerate(fusion.outputs) if o.shape.dims == dims[:kept])
    if len(wide) + len(narrow) != len(fusion.outputs) or any(o.part is not None for o in fusion.outputs):
        return None
    if prod(dims[kept:]) < MIN_ROW or not prod(dims) or not row_major(fusion):
        return None
    roots = [o.instruction for o in fusion.outputs]
    cut = partition(list(dict.fromkeys([*roots, *(i.operands[0] for i in reduces)])), provided=reduces)
    if not all(_by_rows(i, dims[:kept], cut) for i in reduces) or not _needed(fusion, wide, reduces):
        return None
    return Rows(dims, kept, reduces, wide, narrow, cut)


def _by_rows(i: Instruction, rows: tuple[int, ...], cut: Partition) -> bool:
    """Whether a reduction is read in the kernel's own loops alone, and there for the row they are at."""
    wanted = [{Dim(d), Const(0)} if size == 1 else {Dim(d)} for d, size in enumerate(rows)]
    return all(
        isinstance(space, tuple)
        and space[0] == "entry"
        and all(e in allowed for e, allowed in zip(index, wanted, strict=True))
        for space, index in cut.accesses[i]
    )


def _needed(fusion: Fusion, wide: Sequence[int], reduces: Sequence[Instruction]) -> bool:
    """Whether an output along the row, or what is reduced, is computed from a reduction."""
    stack = [fusion.outputs[n].instruction for n in wide] + [i.operands[0] for i in reduces]
    seen: set[Instruction] = set()
    while stack:
        i = stack.pop()
        if i in reduces:
            return True
        if i not in seen:
            seen.add(i)
            stack.extend(i.operands)
    return False


@hero("rows")
class RowsEmitter:
    """See the module."""

    def emit(self, fusion: Fusion, name: str, target: Target) -> Kernel:
        rows = rows_of(fusion)
        assert rows is not None
        if target.kind != "cpu":
            kernel = load()["loop"].emit(fusion, name, target)
            kernel.notes["reason"] = "rows are done one by one on CPUs only"
            return kernel
        return _emit(entry(fusion, rows.cut, name, target), rows)


def _emit(frame: Entry, rows: Rows) -> Kernel:
    e, row_sizes, count = frame.e, rows.dims[rows.kept :], prod(rows.dims[: rows.kept])

    def row(item: Expr, carried: Sequence[SSAValue]) -> list[SSAValue]:
        place = e.simplify(delinearize(item, rows.dims[: rows.kept]))
        # variables of their own: what reads a reduction finds it by its index
        at = tuple(
            e.variable(v, 0, size - 1) for v, size in zip(e.index_values(place), rows.dims[: rows.kept], strict=True)
        )
        for i in rows.reduces:
            reducer = reducer_of(i)

            def element(v: Index, sums: Sequence[SSAValue], i=i, reducer=reducer) -> list[SSAValue]:  # noqa: ANN001
                return reducer.step(e, sums, [e.value(i.operands[0], (*at, *v))])

            e.provide(i, at, reducer.finish(e, e.loop(row_sizes, reducer.start(e), element)))
        outputs = list(carried)
        for n in rows.narrow:
            outputs[n] = e.insert(e.value(frame.fusion.outputs[n].instruction, at), outputs[n], at)

        def along(v: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
            index = (*at, *v)
            values = [e.value(frame.fusion.outputs[n].instruction, index) for n in rows.wide]
            return [e.insert(value, t, index) for value, t in zip(values, tensors, strict=True)]

        stored = e.loop(row_sizes, [outputs[n] for n in rows.wide], along) if rows.wide else []
        for n, t in zip(rows.wide, stored, strict=True):
            outputs[n] = t
        return outputs

    frame.outputs = item_loop(frame, count, 0, count, frame.outputs, row)
    names = ", ".join(i.name for i in rows.reduces)
    return frame.finish(Launch(work_items=count), "rows", {"form": f"rows of {prod(row_sizes)}", "reduces": names})
