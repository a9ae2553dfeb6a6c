"""xla_gpu.loop → scf.for nests.

Each symbol of the map becomes an `scf.for` (s0 outermost; a symbol with one value becomes that constant), the map's
results an `xla_gpu.apply_indexing` in the innermost body, each constraint an `scf.if` around the outermost loop it
allows. On the CPU a constraint of the form `s + rest <= hi` shortens the loop over `s` instead, so that the body stays
free of branches and vectorises. Marks of a loop (`heron.full_unroll`) go to all of its nest.

    xla_gpu.loop (%i)[%s] -> (%r) in "(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 3], s0 in [0, 3]" { body }
    ->
    scf.for %s = %c0 to %c4 step %c1 { %r = xla_gpu.apply_indexing "…"(%i)[%s]; body }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from heron.analysis.indexing import Add, Const, Dim, Expr, IndexingMap, Sym
from heron.analysis.indexing.map import Constraint
from heron.codegen.ir.builder import Builder, Constants
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp, LoopOp, YieldOp
from heron.codegen.ir.editing import erase, functions, replace, scf_for, scf_if, walk_blocks, yield_
from heron.codegen.ir.types import INDEX
from heron.codegen.transforms.options import TransformOptions
from heron.records import dataclass


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Lowers every loop of the module."""
    for function in functions(module):
        constants = Constants(function.body.block)
        for block in walk_blocks(function.body.block):
            op = block.first_op
            while op is not None:
                before, following = op.prev_op, op.next_op
                if type(op) is LoopOp:
                    _lower(op, constants, options)
                    # a loop of one iteration leaves its body, loops included, in this very block
                    following = block.first_op if before is None else before.next_op
                op = following


def _lower(loop: LoopOp, constants: Constants, options: TransformOptions) -> None:
    m = loop.map.simplify(keep_dims=True)
    if m.is_known_empty:
        return replace(loop, list(loop.inits))
    block = loop.parent
    assert block is not None
    builder = Builder(block, constants, before=loop, known={})
    results = _Nest(loop, m, options).level(builder, 0, loop.inits, [])
    replace(loop, results)


@dataclass(slots=True)
class _Nest:
    """Builds the nest of one loop from the outside in."""

    loop: LoopOp
    map: IndexingMap
    options: TransformOptions

    def level(
        self, builder: Builder, depth: int, carried: Sequence[SSAValue], syms: list[SSAValue]
    ) -> Sequence[SSAValue]:
        """Emits constraints decided by the first `depth` symbols, then the loop over symbol `depth`."""
        bound = [c for c in self.map.constraints if self._bounds(c, depth)]
        decided = [c for c in self._decided(depth) if not (depth and self._bounds(c, depth - 1))]
        if decided:
            return self._guarded(builder, decided, depth, carried, syms, bound)
        return self._loop(builder, depth, carried, syms, bound)

    def _decided(self, depth: int) -> list[Constraint]:
        return [c for c in self.map.constraints if _deepest(c[0]) == depth]

    def _bounds(self, constraint: Constraint, depth: int) -> bool:
        """Whether the constraint is turned into the upper bound of the loop over symbol `depth`."""
        e, lo, _ = constraint
        if self.options.is_gpu or depth >= len(self.map.syms) or _deepest(e) != depth + 1:
            return False
        terms = _terms(e)
        sym = Sym(depth)
        if sym not in terms or any(sym in t.variables() for t in terms if t is not sym):
            return False
        v = self.map.syms[depth]
        return lo <= self.map.range_of(e)[0] and v.lo < v.hi

    def _guarded(
        self,
        builder: Builder,
        constraints: list[Constraint],
        depth: int,
        carried: Sequence[SSAValue],
        syms: list[SSAValue],
        bound: list[Constraint],
    ) -> Sequence[SSAValue]:
        condition: SSAValue | None = None
        for e, lo, hi in constraints:
            value = self._apply(builder, [e], syms)[0]
            have_lo, have_hi = self.map.range_of(e)
            for holds, name, limit in ((lo <= have_lo, "sge", lo), (hi >= have_hi, "sle", hi)):
                if holds:
                    continue
                test = builder.cmpi(name, value, builder.integer(limit))
                condition = test if condition is None else builder.op(arith.AndIOp, condition, test)
        if condition is None:
            return self._loop(builder, depth, carried, syms, bound)
        then = Block()
        inside = Builder(then, builder.constants, known={})
        inside.add(yield_(self._loop(inside, depth, carried, syms, bound)))
        otherwise = Block([yield_(carried)]) if carried else None
        return builder.add(scf_if(condition, [v.type for v in carried], then, otherwise)).results

    def _loop(
        self,
        builder: Builder,
        depth: int,
        carried: Sequence[SSAValue],
        syms: list[SSAValue],
        bound: list[Constraint],
    ) -> Sequence[SSAValue]:
        if depth == len(self.map.syms):
            return self._body(builder, carried, syms)
        v = self.map.syms[depth]
        if v.lo == v.hi:
            return self.level(builder, depth + 1, carried, [*syms, builder.integer(v.lo)])
        upper = builder.integer(v.hi + 1)
        for e, _, hi in bound:  # s + rest <= hi  ==  s < hi + 1 - rest
            rest = e.substitute((), [None] * depth + [Const(0)])
            limit = self._apply(builder, [Const(hi + 1) - rest], syms)[0]
            upper = builder.op(arith.MinSIOp, upper, limit)
        body = Block(arg_types=[INDEX, *(c.type for c in carried)])
        inside = Builder(body, builder.constants, known={})
        results = self.level(inside, depth + 1, body.args[1:], [*syms, body.args[0]])
        inside.add(yield_(results))
        op = scf_for(builder.integer(v.lo), upper, builder.integer(1), carried, body)
        op.attributes.update(self.loop.attributes)
        return builder.add(op).results

    def _apply(self, builder: Builder, exprs: Sequence[Expr], syms: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """The expressions at the current point; symbols of loops further in do not occur in them."""
        known = [(v.lo, v.hi) for v in self.map.syms[: len(syms)]]
        m = IndexingMap(exprs, self.map.dims, known)
        return builder.add(ApplyIndexingOp(m, [*self.loop.dims, *syms])).results

    def _body(self, builder: Builder, carried: Sequence[SSAValue], syms: list[SSAValue]) -> Sequence[SSAValue]:
        source = self.loop.body.block
        n, k = len(self.map.syms), len(self.map.syms) + len(self.map.results)
        for old, new in zip((*source.args[:n], *source.args[k:]), (*syms, *carried), strict=True):
            old.replace_all_uses_with(new)
        self._replace_results(builder, source.args[n:k], syms)
        last = source.last_op
        assert isinstance(last, YieldOp)
        results = list(last.operands)
        erase(last)
        op = source.first_op
        while op is not None:
            following = op.next_op
            op.detach()
            builder.add(op)
            op = following
        return results

    def _replace_results(self, builder: Builder, args: Sequence[SSAValue], syms: list[SSAValue]) -> None:
        needed: list[tuple[SSAValue, Expr]] = []
        for arg, e in zip(args, self.map.results, strict=True):
            if arg.first_use is None:
                continue
            if isinstance(e, Dim):
                arg.replace_all_uses_with(self.loop.dims[e.index])
            elif isinstance(e, Sym):
                arg.replace_all_uses_with(syms[e.index])
            elif isinstance(e, Const):
                arg.replace_all_uses_with(builder.integer(e.value))
            else:
                needed.append((arg, e))
        if needed:
            values = self._apply(builder, [e for _, e in needed], syms)
            for (arg, _), value in zip(needed, values, strict=True):
                arg.replace_all_uses_with(value)


def _deepest(e: Expr) -> int:
    """1 + the index of the innermost symbol in `e`; 0 when it has none."""
    return max((v.index + 1 for v in e.variables() if isinstance(v, Sym)), default=0)


def _terms(e: Expr) -> list[Expr]:
    return _terms(e.lhs) + _terms(e.rhs) if isinstance(e, Add) else [e]
