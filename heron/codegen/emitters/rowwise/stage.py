"""One stage of a row: a walk along it, which the CPU and GPU code of row-wise kernels share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.reducers import split, starts
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class StageCode:
    """The code of a stage.

    Args:
        reducers: the reductions along the row.
        given: instructions whose elements earlier stages kept.
        outputs: instructions whose elements are stored in outputs.
        saved: instructions whose elements are kept for later stages.
    """

    e: FunctionEmitter
    reducers: Sequence[Reducer]
    given: Sequence[Instruction]
    outputs: Sequence[Instruction]
    saved: Sequence[Instruction]

    def start(self) -> list[SSAValue]:
        """The accumulators before the first element."""
        return starts(self.e, self.reducers)

    def element(
        self, index: Index, slot: Index, kept: Mapping[Instruction, SSAValue], carried: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The carried values after one element: accumulators, then `outputs`, then the tensors of `saved`.

        ``slot``: its index in the tensors of kept elements, ``kept``.
        """
        e, sums = self.e, sum(len(r.types) for r in self.reducers)
        stored = sums + len(self.outputs)
        for i in self.given:
            e.provide(i, index, e.extract(kept[i], slot))
        read = [[e.value(a, index) for a in r.arrays] for r in self.reducers]
        values = [e.value(i, index) for i in self.outputs]
        parts = zip(self.reducers, split(self.reducers, carried[:sums]), read, strict=True)
        results = [v for r, accumulators, x in parts for v in r.step(e, accumulators, x)]
        results += [e.insert(x, t, index) for x, t in zip(values, carried[sums:stored], strict=True)]
        saves = zip(self.saved, carried[stored:], strict=True)
        return [*results, *(e.insert(e.value(i, index), t, slot) for i, t in saves)]

    def finish(self, at: Index, accumulators: Sequence[SSAValue]) -> None:
        """Provide the results of the row at `at`."""
        for r, values in zip(self.reducers, split(self.reducers, accumulators), strict=True):
            self.e.provide(r.hero, at, r.finish(self.e, values))
