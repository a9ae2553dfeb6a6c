"""priority-fusion: producers go into their readers, those first that save most time."""

from __future__ import annotations

from dataclasses import field
from heapq import heappop, heappush

from heron.analysis.cost.code_size import code_limit
from heron.analysis.cost.estimate import clock_of
from heron.hlo.facts import is_generated, updated_operands
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.model.candidates import CHEAP, Kernel, Kernels
from heron.records import dataclass
from heron.targets import Target, get

#: a cheap producer that stays in memory is computed in a reader, too, if that makes the reader faster by this part
_WORTH = 0.02


@register
@dataclass(frozen=True)
class PriorityFusion(Pass):
    """Fuses by a model of time: of all producers the one whose fusion saves most goes into its readers next.

    The model (`heron.analysis.cost`) knows a launch, bytes and how they are read, caches, arithmetic, idle cores. What
    a fusion costs follows from its two parts, so that after each only its neighbours are looked at again. A producer
    goes into all its readers, and is gone; one that is cheap and has to stay may still be computed where that is faster
    than reading it. Constants, broadcasts and views cost nothing and go everywhere. Reductions of a few elements are
    done by the thread that wants the result; other reductions, scans, scatters and updates in place stay roots, and an
    update takes in nothing that reads what it overwrites. Every producer leaves a decision with both times in µs.
    ``target``: the machine, if not a GPU that is compiled for.

    a = f32[8] multiply(f32[8] x, f32[8] y)
    ROOT b = f32[8] add(a, y)
    ->
    body {
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      m = f32[8] multiply(p, q)
      ROOT r = f32[8] add(m, q)
    }
    ROOT f = f32[8] fusion(x, y), kind=kLoop, calls=body
    """

    name = "priority-fusion"
    target: str = "sm_90"
    max_inputs: int = 32
    max_instructions: int = 1500
    constraints = (
        Constraint("priority-fusion", "multi-output-fusion", "what has one reader goes into it, not beside it"),
        Constraint("priority-fusion", "fusion-wrapper", "wrapped ops are not fused any more"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        target = ctx.target if isinstance(ctx.target, Target) and ctx.target.is_gpu else get(self.target)
        changed = False
        for c in module.non_fusion_computations():
            changed |= self._run(c, target, ctx)
        return changed

    def _run(self, c: Computation, target: Target, ctx: PassContext) -> bool:
        changed = _have_own_arrays(c)
        kernels = Kernels(c, clock_of(target), self.max_inputs, self.max_instructions, code_limit(target))
        _Queue(kernels, ctx).run()
        # readers first: what they compute themselves must still be there when they are built
        for kernel in sorted(kernels.of.values(), key=lambda k: -k.number):
            if len(kernel.members) > 1 and kernel.root.parent is not None:
                if not ctx.may_fire("fuse", "priority_fusion.py", kernel.root):
                    return changed
                ctx.trace.became[kernel.root.name] = fuse([kernel.root], kernel.members).name
                changed = True
        return changed


def _have_own_arrays(c: Computation) -> bool:
    """Give updates that change a broadcast or an iota in memory one of their own: the kernel may compute the others."""
    changed = False
    for i in list(c.instructions):
        for n, x in enumerate(updated_operands(i)):
            if is_generated(x) and len(x.users) > 1:
                i.set_operand(n, c.attach(x.clone(list(x.operands))))
                changed = True
    return changed


@dataclass(slots=True)
class _Candidate:
    """A producer. ``slower``: by how many seconds each reader that could compute it would be slower; ``why_not``: the
    readers that could not. ``version`` tells entries of the queue that are out of date."""

    kernel: Kernel
    slower: dict[Kernel, float] = field(default_factory=dict)
    why_not: dict[Kernel, str] = field(default_factory=dict)
    version: int = 0

    @property
    def saved(self) -> float:
        """Seconds saved by putting it into all its readers."""
        return self.kernel.seconds - sum(self.slower.values())


class _Queue:
    """Producers by what their fusion saves."""

    def __init__(self, kernels: Kernels, ctx: PassContext) -> None:
        self.kernels, self.ctx = kernels, ctx
        self.candidates = {k: _Candidate(k) for k in kernels.of.values() if kernels.may_move(k)}
        self.heap: list[tuple[float, int, int, Kernel]] = []

    def run(self) -> None:
        for x, readers in self.kernels.free.items():
            self._tell(True, "costs nothing to compute", x.name, list(readers), None, None)
        for candidate in self.candidates.values():
            self._weigh(candidate, self.kernels.readers.get(candidate.kernel.root, {}))
        while self.heap:
            _, _, version, kernel = heappop(self.heap)
            candidate = self.candidates.get(kernel)
            if candidate is not None and candidate.version == version:
                self._fuse(candidate)
        for candidate in sorted(self.candidates.values(), key=lambda x: -x.kernel.number):
            self._stay(candidate)

    def _weigh(self, candidate: _Candidate, readers: dict[Kernel, None] | list[Kernel]) -> None:
        """Look at these readers of a producer (again), and give it its place in the queue."""
        kernels, producer = self.kernels, candidate.kernel
        for reader in readers:
            candidate.slower.pop(reader, None)
            candidate.why_not.pop(reader, None)
            why_not = kernels.against(producer, reader)
            if why_not:
                candidate.why_not[reader] = why_not
            else:
                candidate.slower[reader] = kernels.slower_by(producer, reader)
        candidate.version += 1
        if candidate.slower and not candidate.why_not and producer.root not in kernels.needed:
            saved = candidate.saved
            if saved >= 0:
                heappush(self.heap, (-saved, -producer.number, candidate.version, producer))

    def _fuse(self, candidate: _Candidate) -> None:
        """Put a producer into all its readers."""
        readers, producer = list(candidate.slower), candidate.kernel
        before = producer.seconds + sum(r.seconds for r in readers)
        del self.candidates[producer]
        self._into(producer, readers)
        why = "its only reader" if len(readers) == 1 else f"all {len(readers)} readers compute it themselves"
        self._tell(True, why, producer.root.name, readers, before, sum(r.seconds for r in readers))

    def _into(self, producer: Kernel, readers: list[Kernel]) -> None:
        """Let readers compute a producer; then look again at all whose readers, or who, are others now."""
        kernels = self.kernels
        above = list(kernels.producers(producer))
        again: dict[Kernel, dict[Kernel, None]] = {k: {} for k in above}
        for reader in readers:
            for p in [*kernels.producers(reader)]:
                again.setdefault(p, {})
            kernels.fuse(producer, reader)
        kernels.drop_if_dead(producer)
        work = [k for k in again if k is not producer]
        while work:  # what was read by a kernel that computes it now may have no reader left
            k = work.pop()
            if kernels.of.get(k.root) is k and not kernels.readers.get(k.root):
                more = list(kernels.producers(k))
                if kernels.drop_if_dead(k):
                    self.candidates.pop(k, None)
                    work += more
                    again |= {m: again.get(m, {}) for m in more}
        changed = set(readers)
        for k in again:
            candidate = self.candidates.get(k)
            if candidate is None or kernels.of.get(k.root) is not k:
                continue
            now = kernels.readers.get(k.root, {})
            for gone in [r for r in (*candidate.slower, *candidate.why_not) if r not in now]:
                candidate.slower.pop(gone, None)
                candidate.why_not.pop(gone, None)
            self._weigh(candidate, [r for r in now if r in changed])
        for reader in readers:
            candidate = self.candidates.get(reader)
            if candidate is not None:
                self._weigh(candidate, kernels.readers.get(reader.root, {}))

    def _stay(self, candidate: _Candidate) -> None:
        """A producer that stays in memory: compute it anew where that is cheap and faster; tell why it stays."""
        kernels, producer = self.kernels, candidate.kernel
        if kernels.of.get(producer.root) is not producer:
            return
        size = max(1.0, producer.work.size)
        for reader in list(candidate.slower):
            if producer.work.flops > CHEAP * size or kernels.against(producer, reader):
                continue
            slower = kernels.slower_by(producer, reader)
            if slower < -_WORTH * reader.seconds:
                before, why = reader.seconds, "cheaper to compute than to read"
                kernels.fuse(producer, reader)
                self._tell(True, why, producer.root.name, [reader], before, reader.seconds)
                del candidate.slower[reader]
        needs = kernels.needed.get(producer.root)
        if needs is producer.root:  # what the computation gives
            return
        if needs is not None:
            why = f"'{needs.name}' ({needs.opcode}) needs it in memory"
            self._tell(False, why, producer.root.name, [], None, None, needs.name)
            return
        if kernels.drop_if_dead(producer):
            return
        for reader, why in candidate.why_not.items():
            self._tell(False, why, producer.root.name, [reader], None, None)
        if candidate.slower and not candidate.why_not:
            readers = list(candidate.slower)
            before = producer.seconds + sum(r.seconds for r in readers)
            after = sum(r.seconds + s for r, s in candidate.slower.items())
            self._tell(False, "computing it in its readers takes longer", producer.root.name, readers, before, after)

    def _tell(
        self,
        ok: bool,
        why: str,
        producer: str,
        readers: list[Kernel],
        before: float | None,
        after: float | None,
        needs: str = "",
    ) -> None:
        self.ctx.decide(
            ok,
            why,
            subject=producer,
            object=needs or ", ".join(r.root.name for r in readers),
            cost_before=None if before is None else before * 1e6,
            cost_after=None if after is None else after * 1e6,
        )
