"""Elements that a GPU thread holds in registers while it does some steps of a bitonic sort."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental import Value
from heron.codegen.elemental.logic import select
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.sort.code import SortCode


class Held:
    """Elements at some places below ``end``, ascending but for mirrored ones, to be held in registers.

    Places whose ``exists`` does not hold have none; the first has one. ``index`` says where in the tensors a place is.
    """

    def __init__(
        self,
        frame: Frame,
        sort: SortCode,
        places: Sequence[Expr],
        exists: Sequence[list[Constraint]],
        end: int,
        index: Callable[[Expr], Index],
    ) -> None:
        self.frame, self.e, self.sort = frame, frame.e, sort
        self.places, self.exists, self.end, self.index = places, exists, end, index
        self.elements: list[list[Value]] = []

    def after_steps(self, steps: int, mirrored: bool, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors after the steps that compare these 2^steps elements."""
        self.elements = [self._loaded(n, tensors) for n in range(len(self.places))]
        count = len(self.places) // 2
        for n in range(steps):
            apart = count >> n
            for k in range(2 * count):
                if k & apart == 0:
                    self._exchange(k, 2 * count - 1 - k if mirrored and n == 0 else k + apart)
        return self._stored(tensors)

    def _loaded(self, n: int, tensors: Sequence[SSAValue]) -> list[Value]:
        """The elements at place `n`; where there are none those at place 0 stand in, and nothing is exchanged."""
        e, place = self.e, self.places[n]
        exists = e.holds(self.exists[n]) if n else None
        if exists is not None:
            own, first = e.index_values((place, self.places[0]))
            place = e.variable(e.b.select(exists, own, first), 0, self.end - 1)
        index = self.index(place)
        return [e.extract(t, index) for t in tensors]

    def _exchange(self, first: int, second: int) -> None:
        """Bring the elements at two places in order, if there is one at the second."""
        e, b = self.e, self.e.b
        one, two = self.elements[first], self.elements[second]
        swap = self.sort.before(self.frame, two, one)
        exists = e.holds(self.exists[second])
        if exists is not None:
            swap = b.op(arith.AndIOp, swap, exists)
        pairs = list(zip(one, two, strict=True))
        self.elements[first] = [select(e, swap, y, x) for x, y in pairs]
        self.elements[second] = [select(e, swap, x, y) for x, y in pairs]

    def _stored(self, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        result = list(tensors)
        for values, place, exists in zip(self.elements, self.places, self.exists, strict=True):
            index = self.index(place)

            def store(_: object, carried: Sequence[SSAValue], values=values, index=index) -> list[SSAValue]:  # type: ignore[no-untyped-def]
                return [self.e.insert(v, t, index) for v, t in zip(values, carried, strict=True)]

            result = self.e.loop([], result, store, lambda _, c=exists: c)
        return result
