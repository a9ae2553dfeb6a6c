"""The last, partial round of a loop is peeled off: the rounds before it need no bounds check.

A constraint that breaks in nothing but the last value of the outermost symbol leaves the loop over the others. The
order of iterations stays, so that sums do too.

    xla_gpu.loop (%t)[%s] -> … in "(d0)[s0] -> …, domain: d0 in [0, 127], s0 in [0, 7], s0 * 128 + d0 in [0, 999]" { … }
    ->
    xla_gpu.loop (%t)[%s] -> … in "(d0)[s0] -> …, domain: d0 in [0, 127], s0 in [0, 6]" { … }
    xla_gpu.loop (%t)[%s] -> … in "(d0)[s0] -> …, domain: d0 in [0, 127], s0 in [7, 7], d0 + 896 in [0, 999]" { … }

GPU kernels only: on the CPU a bound on a symbol is the end of its loop. It matters to reductions of rows and columns
that their threads do not divide (`nbody`, `gpt2_12l_train_step`): with no branch in between, LLVM writes out several
rounds, whose loads are then under way at once.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from heron.analysis.indexing import IndexingMap, Sym
from heron.analysis.indexing.map import Constraint, Var
from heron.codegen.ir.dialects.indexing_map_attr import IndexingMapAttr
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.codegen.ir.editing import functions, ops_of, replace, walk_blocks
from heron.codegen.transforms.options import TransformOptions

#: whole rounds that are worth code of their own
MIN_ROUNDS = 2


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Peels every such loop of a GPU kernel."""
    if not options.is_gpu:
        return
    for function in functions(module):
        for block in walk_blocks(function.body.block):
            for op in ops_of(block):
                if isinstance(op, LoopOp):
                    _peel(op)


def _peel(loop: LoopOp) -> None:
    m = loop.map
    depth = next((n for n, v in enumerate(m.syms) if v.lo < v.hi), None)
    if depth is None or m.syms[depth].hi - m.syms[depth].lo < MIN_ROUNDS:
        return
    v = m.syms[depth]
    whole, last = (_with_range(m, depth, r) for r in (Var(v.lo, v.hi - 1, v.name), Var(v.hi, v.hi, v.name)))
    kept = [c for c in m.constraints if Sym(depth) not in c[0].variables() or _holds(m, c) or not _holds(whole, c)]
    if len(kept) == len(m.constraints):
        return
    block = loop.parent
    assert block is not None
    before = loop.clone()
    block.insert_op_before(before, loop)
    before.properties["map"] = IndexingMapAttr(whole.replace(constraints=kept))
    rest = loop.clone()
    rest.operands = [*loop.dims, *before.results]
    rest.properties["map"] = IndexingMapAttr(last)
    block.insert_op_before(rest, loop)
    replace(loop, rest.results)


def _with_range(m: IndexingMap, depth: int, r: Var) -> IndexingMap:
    return m.replace(syms=[*m.syms[:depth], r, *m.syms[depth + 1 :]])


def _holds(m: IndexingMap, constraint: Constraint) -> bool:
    """Whether the constraint holds wherever the map's variables stand in their ranges."""
    e, lo, hi = constraint
    least, most = m.simplifier.range_of(m.simplifier.simplify(e))
    return lo <= least and most <= hi
