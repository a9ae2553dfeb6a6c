"""Indices as expressions over the variables of a function: loop variables, index arguments, runtime offsets.

An index becomes SSA values only where a tensor is accessed, simplified, by one `xla_gpu.apply_indexing`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from heron.analysis.indexing.expr import Const, Dim, Expr, Sym
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint, IndexingMap, Var
from heron.analysis.indexing.simplify import simplifier
from heron.codegen.ir.builder import Builder
from heron.codegen.ir.dialects.xla_gpu import ApplyIndexingOp, IndexingMapAttr
from heron.codegen.ir.types import INDEX


class Indices:
    """The variables of a function whose body is emitted, and the values remembered in the current region."""

    def __init__(self, block: Block) -> None:
        self.b = Builder(block)
        self._ranges: list[tuple[int, int]] = []
        self._simplifier = simplifier(())
        self._variables: list[SSAValue] = []
        self._memo: list[dict[Any, Any]] = [{}]

    def variable(self, value: SSAValue, lo: int, hi: int) -> Expr:
        """The expression that stands for an index value known to lie in [lo, hi]."""
        if lo == hi:
            return Const(lo)
        self._variables.append(value)
        self._ranges.append((lo, max(lo, hi)))
        self._simplifier = simplifier(tuple(self._ranges))
        return Dim(len(self._variables) - 1)

    def simplify(self, index: Index) -> Index:
        """The index in canonical form."""
        simplify = self._simplifier.simplify
        return tuple([e if type(e) is Dim or type(e) is Const else simplify(e) for e in index])

    def range_of(self, e: Expr) -> tuple[int, int]:
        """Bounds of an expression over this function's variables."""
        return self._simplifier.range_of(self._simplifier.simplify(e))

    def index_values(self, index: Sequence[Expr]) -> list[SSAValue]:
        """The index as SSA values: variables and constants as they are, the rest by one `apply_indexing`."""
        missing: list[Expr] = []
        for e in index:
            if not isinstance(e, (Dim, Const)) and self._find(e) is None and e not in missing:
                missing.append(e)
        if missing:
            m, operands = self._close(missing)
            op = ApplyIndexingOp.create(
                operands=operands, result_types=[INDEX] * len(missing), properties={"map": IndexingMapAttr(m)}
            )
            self.b.add(op)
            self._memo[-1].update(zip(missing, op.results, strict=True))
        return [self._index_value(e) for e in index]

    def index_value(self, e: Expr) -> SSAValue:
        """One index expression as an SSA value."""
        return self.index_values((e,))[0]

    def _index_value(self, e: Expr) -> SSAValue:
        if isinstance(e, Dim):
            return self._variables[e.index]
        if isinstance(e, Const):
            return self.b.integer(e.value)
        return self._find(e)

    def _used(self, exprs: Sequence[Expr]) -> list[int]:
        used: set[Expr] = set()
        for e in exprs:
            used |= e.variables()
        return sorted(v.index for v in used if isinstance(v, Dim))

    def _close(
        self,
        results: Sequence[Expr],
        constraints: Sequence[Constraint] = (),
        syms: Sequence[int] = (),
        loop_variables: Sequence[int] = (),
    ) -> tuple[IndexingMap, list[SSAValue]]:
        """A map of just the variables used, and their values; `loop_variables` become its symbols, of sizes `syms`."""
        used = self._used([*results, *(c[0] for c in constraints)])
        renumber: list[Expr | None] = [None] * len(self._variables)
        given = [v for v in used if v not in loop_variables]
        for n, v in enumerate(given):
            renumber[v] = Dim(n)
        for n, v in enumerate(loop_variables):
            renumber[v] = Sym(n)
        m = IndexingMap(
            [e.substitute(renumber) for e in results],
            [Var(*self._ranges[v]) for v in given],
            [Var(0, n - 1) for n in syms],
            [(e.substitute(renumber), lo, hi) for e, lo, hi in constraints],
        )
        return m, [self._variables[v] for v in given]

    def _find(self, key: Any) -> Any:
        for scope in reversed(self._memo):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """The result of `make`, remembered under `key` as long as this region exists."""
        found = self._find(key)
        if found is None:
            found = self._memo[-1][key] = make()
        return found

    @contextmanager
    def region(self, block: Block) -> Generator[Block, None, None]:
        """Emit into `block`; the values made there are forgotten afterwards."""
        before, self.b.block = self.b.block, block
        self._memo.append({})
        try:
            yield block
        finally:
            self._memo.pop()
            self.b.block = before

    @contextmanager
    def scope(self) -> Generator[None, None, None]:
        """Emit in place, forgetting afterwards what was said of instructions: a called computation's own."""
        self._memo.append({})
        try:
            yield
        finally:
            self._memo.pop()

    def never(self, constraints: Sequence[Constraint]) -> bool:
        """Whether some constraint holds nowhere."""
        return any(
            high < lo or low > hi
            for constrained, lo, hi in constraints
            for low, high in [self._simplifier.range_of(self._simplifier.simplify(constrained))]
        )

    def holds(self, constraints: Sequence[Constraint]) -> SSAValue | None:
        """An `i1`: every constraint holds. None when they always do."""
        condition: SSAValue | None = None
        for constrained, lo, hi in constraints:
            e = self._simplifier.simplify(constrained)
            have_lo, have_hi = self._simplifier.range_of(e)
            tests: list[SSAValue] = []
            if have_lo < lo or have_hi > hi:
                value = self.index_value(e)
                if have_lo < lo:
                    tests.append(self.b.cmpi("sge", value, self.b.integer(lo)))
                if have_hi > hi:
                    tests.append(self.b.cmpi("sle", value, self.b.integer(hi)))
            for test in tests:
                condition = test if condition is None else self.b.op(arith.AndIOp, condition, test)
        return condition
