"""row-block-fusion: products and the kernels around them become one step, done a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from heron.analysis.fusion.analysis import analyse
from heron.analysis.fusion.in_step import used_in_step
from heron.analysis.fusion.row_blocks import RowBlocks, follows, source
from heron.analysis.graph.reachability import Reachability
from heron.hlo.calls.gemm_shape import GemmShape, gemm_shape
from heron.hlo.facts import combiner, is_alias
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.records import dataclass

#: bytes that come in short rows to lose what one byte of traffic takes (measured with the updates of Adam)
_BESIDE = 3


def _any(_: Instruction) -> bool:
    return True


@register
@dataclass(frozen=True)
class RowBlockFusion(Pass):
    """Joins a product with the kernel that reads its result, row by row, and with the product that reads those rows.

    The values between them are computed a block of rows at a time and read again while they are in a processor's own
    cache: a bias, an activation and a residual behind a product, or the scores of attention, which never become a
    matrix in memory. Kernels and products stay as they are inside, and so do all values. A product rearranges its right
    operand for every block: a decision tells the bytes that no longer go through memory and those that are rearranged
    again. The calls for a block take as long as ``calls`` bytes of traffic, too long for small matrices in batches.
    Elementwise kernels are done in blocks of ``columns`` at most, others in whole rows; what is between two steps takes
    ``cache`` bytes of a thread, unless blocks would have fewer than ``least_rows`` rows. Arrays of less than ``least``
    bytes stay in caches anyway. ``multiplies``: whether a product can be done in blocks here.

    activate {
      x = f32[1024,1024] parameter(0)
      ROOT t = f32[1024,1024] tanh(x)
    }

    d = f32[1024,1024] dot(f32[1024,512] x, f32[512,1024] w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT a = f32[1024,1024] fusion(d), kind=kLoop, calls=activate
    ->
    ...
    both {
      x = f32[1024,512] parameter(0)
      w = f32[512,1024] parameter(1)
      d = f32[1024,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT a = f32[1024,1024] fusion(d), kind=kLoop, calls=activate
    }

    ROOT f = f32[1024,1024] fusion(x, w), kind=kCustom, calls=both
    """

    name = "row-block-fusion"
    looks_for = frozenset({"dot"})
    multiplies: Callable[[Instruction], bool] = _any
    least: int = 1 << 19
    cache: int = 1 << 18
    columns: int = 64
    least_rows: int = 48
    items: int = 16
    calls: int = 3 << 13
    constraints = (
        Constraint("fusion-wrapper", "row-block-fusion", "what is around products are kernels"),
        Constraint("dot-decomposer", "row-block-fusion", "products with one batch, row, column and sum each"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in list(module.non_fusion_computations()):
            if any(i.opcode == "dot" and i.shape.byte_size >= self.least for i in c.instructions):
                changed |= self._run(c, ctx)
        return changed

    def _run(self, c: Computation, ctx: PassContext) -> bool:
        order = c.post_order()
        reach, taken = Reachability(c), set[Instruction]()
        found = [g for i in order if (g := self._group(i, reach, taken, ctx)) is not None]
        for n, group in enumerate(found):
            if not ctx.may_fire("join", "row_block_fusion.py", group.steps[0]):
                return n > 0
            self._fuse(group)
            ctx.trace.became.update({i.name: group.name for i in group.steps})
        return bool(found)

    def _group(self, dot: Instruction, reach: Reachability, taken: set[Instruction], ctx: PassContext) -> _Group | None:
        """The product with what follows it, if that is worth a fusion; its steps are `taken` then."""
        if not self._fits(dot, taken):
            return None
        readers, why, group = _readers(dot), "nothing reads it", None
        for kernel in readers:
            given = self._given(kernel, dot, reach, taken)
            why = self._against(kernel, given, taken) or _entangled([*given, kernel], reach)
            if not why:
                group = _Group(gemm_shape(dot), [*given, kernel])
                break
        if group is None:
            ctx.decide(False, why, subject=dot.name, object=readers[0].name if readers else "")
            return None
        best = group.blocks(self)
        for longer in self._longer(group, reach, taken):
            cut = longer.blocks(self)
            if longer.gain(cut, self.calls) > group.gain(best, self.calls):
                group, best = longer, cut
        before, again, beside = group.saved(), group.again(best), group.beside(best)
        gain = group.gain(best, self.calls)
        ok = gain > 0
        why = f"{best}; {before} bytes stay in caches, {again} are rearranged again, {beside} come in short rows"
        if not ok and before > again + beside // _BESIDE:
            why += "; calls for each block take longer"
        if ok:
            group.cut = best
            taken.update(group.steps)
            for step in group.steps[1:]:
                reach.fuse(group.steps[0], step)
        ctx.decide(ok, why, subject=dot.name, object=group.steps[-1].name, cost_before=before, cost_after=before - gain)
        return group if ok else None

    def _fits(self, dot: Instruction, taken: set[Instruction]) -> bool:
        """Whether it is a product that can be done in blocks, of some size."""
        is_free = dot.opcode == "dot" and dot not in taken and not _is_ordered(dot)
        return is_free and dot.shape.byte_size >= self.least and self.multiplies(dot)

    def _given(
        self, kernel: Instruction, dot: Instruction, reach: Reachability, taken: set[Instruction]
    ) -> list[Instruction]:
        """`dot` and the other products that the kernel, and nobody else, reads and that can be done with it."""
        found, shape = [dot], gemm_shape(dot)
        for other in dict.fromkeys(map(source, kernel.operands)):
            if other is dot or not self._fits(other, taken) or _readers(other) != [kernel]:
                continue
            its = gemm_shape(other)
            same = (its.batch, its.m, its.n) == (shape.batch, shape.m, shape.n)
            if same and not reach.connected(other, dot):
                found.append(other)
        return found

    def _against(self, kernel: Instruction, given: list[Instruction], taken: set[Instruction]) -> str:
        """Why a kernel cannot be done with the products it is given by; empty if it can."""
        if kernel.opcode != "fusion" or kernel.attrs["kind"] == "kCustom" or _is_ordered(kernel):
            return f"a {kernel.opcode} reads it"
        if kernel in taken:
            return "the kernel that reads it belongs to another product"
        shape = gemm_shape(given[0])
        if _adds_product(kernel, shape):
            return "the product is added to a sum where that lies"
        numbers = [n for n, o in enumerate(kernel.operands) if source(o) in given]
        why = follows(kernel, numbers, shape.batch * shape.m)
        if why:
            return why
        reduces = _reduces(kernel)
        is_simple = all(combiner(i.attrs["to_apply"]) for i in reduces)
        if not reduces:
            return ""
        return "" if is_simple and analyse(kernel).kind == "rows" else "it is no row-wise kernel"

    def _longer(self, group: _Group, reach: Reachability, taken: set[Instruction]) -> Iterator[_Group]:
        """The group with a product that reads its kernel's rows, and that with the kernel behind that product."""
        for dot in _readers(group.steps[-1]):
            if dot.opcode != "dot" or dot in taken or _is_ordered(dot) or not self.multiplies(dot):
                continue
            if not group.continues(dot):
                continue
            more = group.with_(dot)
            if _entangled(more.steps, reach):
                continue
            yield more
            if source(dot.operands[0]) is not group.steps[-1]:
                continue
            for reader in _readers(dot):
                longest = more.with_(reader)
                if not self._against(reader, [dot], taken) and not _entangled(longest.steps, reach):
                    yield longest
                    break

    def _fuse(self, group: _Group) -> None:
        members = dict.fromkeys(group.steps)
        for step in group.steps:
            members |= dict.fromkeys(b for o in step.operands for b in _between(o) if source(o) in members)
        parts = {u: None for step in group.steps if step.shape.is_tuple for u in step.users}
        roots = [i for i in (*group.steps, *parts) if not i.shape.is_tuple and _leaves(i, members | parts)]
        made = fuse(roots, members | parts, prefix="row_block_")
        made.attrs["kind"] = "kCustom"
        assert group.cut is not None
        made.extras["backend_config"] = group.cut.text()
        group.name = made.name


@dataclass(slots=True)
class _Group:
    """Products and kernels, each after those it needs, and the rows they have in common."""

    shape: GemmShape
    steps: list[Instruction] = field(default_factory=list)
    cut: RowBlocks | None = None
    name: str = ""

    def with_(self, step: Instruction) -> _Group:
        return _Group(self.shape, [*self.steps, step])

    def continues(self, dot: Instruction) -> bool:
        """Whether a product's rows, or its columns, are those of the group."""
        its, kernel = gemm_shape(dot), self.steps[-1]
        left, right = (source(o) is kernel for o in dot.operands[:2])
        if left and right or its.batch != self.shape.batch:
            return False
        if left:
            return its.m == self.shape.m and not its.lhs_transposed
        return its.n == self.shape.m and its.rhs_transposed

    @property
    def values(self) -> list[tuple[int, int, bool]]:
        """Of every array that a step reads from another: its bytes, how often it is read, whether it also goes out."""
        found: list[tuple[int, int, bool]] = []
        for step in self.steps:
            for part in step.users if step.shape.is_tuple else [step]:
                readers = _readers(part)
                inside = sum(r in self.steps for r in readers)
                if inside:
                    outside = part.is_root or inside < len(readers) or _is_result(part)
                    found.append((part.shape.byte_size, inside, outside))
        return found

    def saved(self) -> int:
        """Bytes that are not read, or not written and read, from and to memory."""
        return sum(size * (reads + (not outside)) for size, reads, outside in self.values)

    def again(self, cut: RowBlocks) -> int:
        """Bytes of right operands that are rearranged more than once."""
        total = 0
        for dot in self.steps:
            if dot.opcode == "dot":
                other = 1
                if source(dot.operands[1]) in self.steps:
                    other = 0  # what is cut into blocks are its columns: the left one is read again
                total += dot.operands[other].shape.byte_size * (-(-cut.rows // cut.block) - 1)
        return total

    def beside(self, cut: RowBlocks) -> int:
        """Bytes that the kernel of blocks which are no whole rows reads from and writes to memory."""
        if not cut.width:
            return 0
        kernel, size = self.steps[-1], self.shape.batch * self.shape.m * self.shape.n
        read = [o.shape for o in kernel.operands if source(o) not in self.steps]
        return sum(s.byte_size for s in (*read, *(s for _, s in kernel.shape.leaves())) if s.num_elements >= size)

    def gain(self, cut: RowBlocks, calls: int) -> int:
        """The bytes of traffic that are left over once all is paid; ``calls``: what a block's calls cost."""
        calls *= cut.count(self.shape.n)
        return self.saved() - self.again(cut) - self.beside(cut) // _BESIDE - calls

    def blocks(self, p: RowBlockFusion) -> RowBlocks:
        """The cut that keeps what is between the steps in a cache, and gives threads enough to share."""
        batch, rows, columns = self.shape.batch, self.shape.m, self.shape.n
        width = self._width(p)
        row_bytes = sum(s.shape.byte_size for s in self.steps[:-1] if s.opcode == "dot") // (batch * rows)
        across = columns // width if width else 1
        most = p.cache * across // max(1, row_bytes)
        pieces = max(-(-rows // max(1, most)), -(-p.items // (batch * across)))
        pieces = min(pieces, -(-rows // p.least_rows))
        block = -(-rows // pieces)
        return RowBlocks(batch, rows, min(rows, -(-block // 6) * 6), width)

    def _width(self, p: RowBlockFusion) -> int:
        """Columns of a block; 0: whole rows."""
        columns, sums = self.shape.n, [s for s in self.steps if s.opcode == "dot"]
        kernel = self.steps[-1]
        if kernel.opcode == "dot" or any(source(o) in self.steps for d in sums for o in d.operands):
            return 0
        given = [n for n, o in enumerate(kernel.operands) if source(o) in sums]
        if any(used_in_step(kernel.attrs["calls"].parameters[n]) is None for n in given):
            return 0
        return p.columns if columns > p.columns and columns % p.columns == 0 else 0


def _readers(i: Instruction) -> list[Instruction]:
    """The readers of an array, through bitcasts and as parts of a tuple, each once."""
    found: dict[Instruction, None] = {}
    work = list(i.users)
    while work:
        user = work.pop(0)
        if is_alias(user):
            work += user.users
        else:
            found[user] = None
    return list(found)


def _between(operand: Instruction) -> list[Instruction]:
    """The bitcasts and parts of tuples between an operand and what computes it."""
    found: list[Instruction] = []
    while is_alias(operand):
        found.append(operand)
        operand = operand.operands[0]
    return found


def _is_result(i: Instruction) -> bool:
    """Whether a bitcast of it is the computation's result."""
    return i.is_root or any(u.opcode == "bitcast" and _is_result(u) for u in i.users)


def _leaves(i: Instruction, members: dict[Instruction, None]) -> bool:
    """Whether somebody outside reads it."""
    return i.is_root or any(u not in members or (u.opcode == "bitcast" and _leaves(u, members)) for u in i.users)


def _entangled(steps: list[Instruction], reach: Reachability) -> str:
    """That something outside of the steps needs one and is needed by one; empty if nothing does."""
    outside = {o for step in steps for o in map(source, step.operands) if o not in steps}
    if any(reach.reaches(s, o) for o in outside for s in steps):
        return "what lies between them would need a part of the fusion before it has run"
    return ""


def _is_ordered(i: Instruction) -> bool:
    return bool(i.control_predecessors or i.control_successors)


def _reduces(kernel: Instruction) -> list[Instruction]:
    return [i for i in kernel.attrs["calls"].instructions if i.opcode == "reduce"]


def _adds_product(kernel: Instruction, shape: GemmShape) -> bool:
    """Whether a kernel only adds a short product to a sum: that is done in the product itself."""
    root = kernel.attrs["calls"].root
    is_sum = root.opcode == "add" and len(kernel.operands) == 2
    return is_sum and set(root.operands) == set(kernel.attrs["calls"].parameters) and shape.k <= 256
