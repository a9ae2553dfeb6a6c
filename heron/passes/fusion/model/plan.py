"""Assigns instructions to kernels: the decisions of instruction-fusion."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from heron.analysis.cost import element_flops
from heron.analysis.cost.code_size import CPU_CODE, CodeLimit, op_code
from heron.analysis.cost.reuse import reads
from heron.analysis.fusion.prefix_scan import is_long_scan
from heron.analysis.fusion.roles import accepts, is_consumer, is_emitted, is_producer, stays_alone
from heron.analysis.fusion.small_products import is_small_product
from heron.hlo.facts import is_generated, is_view, reads_part, reindexes, updated_operands
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.group import LANES, Group
from heron.passes.fusion.model.traffic_model import Machine, inside, separate
from heron.records import dataclass

#: (fused?, reason, producer, consumer or "", cost before, cost after)
Tell = Callable[[bool, str, Instruction, str, float | None, float | None], None]
Measure = Callable[[Instruction], float]

#: LLVM instructions of a value that a kernel computes in several places and that LLVM still copies there; a longer one
#: is a function, which loops around its calls cannot compute in vectors
_MOST_INLINE = 60

#: LLVM instructions of the copies of a function for all elements of a window that still stand side by side
_MOST_WRITTEN_OUT = 300

#: times that a function which would go one by one must cost of an array to be computed ahead
_FAR_LONGER = 2.0

#: flops of an element that may be too much for several kernels
_MANY = 100

#: ops of which an element is made that are looked at for their work
_MOST_SEEN = 64

#: elements of arrays and kernels that stay in the first cache, and of those whose time is mostly that of a call; times
#: that work weighs more in them against bytes
_CACHED, _TINY = 4096, 256
_OF_CACHED, _OF_TINY = 8.0, 32.0

#: work in the time of which a computed element is read
_READ = 2.0

#: operations on positions that take no longer than a load
_SIMPLE = 6


@dataclass(frozen=True, slots=True)
class Limits:
    """Most inputs, most instructions of one kernel, most elements computed for each one needed, most code.

    ``masks``: whether the machine does a part of a vector as fast as all of it.
    """

    inputs: int = 32
    instructions: int = 1500
    recomputation: float = 64.0
    code: CodeLimit = CPU_CODE
    masks: bool = True


class Planner:
    """Visits users before what they use, and decides for each instruction whether its readers compute it themselves.

    An instruction goes into the kernels of all its readers, or, when some reader needs it in memory, into those for
    which computing it is cheaper than reading it.
    """

    def __init__(self, machine: Machine, limits: Limits, tell: Tell) -> None:
        self.machine, self.limits, self.tell = machine, limits, tell
        self.groups: dict[Instruction, Group] = {}
        self._inside: dict[Instruction, list[Group]] = {}
        self._takes: set[Instruction] = set()  # roots of kernels that may compute their operands
        self._old: dict[Instruction, set[Instruction]] = {}
        self._sums: dict[tuple[Instruction, Measure], float] = {}
        self._codes: dict[Instruction, float] = {}
        self._near: dict[Instruction, list[Instruction]] = {}
        self._flops: dict[Instruction, float] = {}
        self._nothing: dict[Instruction, bool] = {}

    def plan(self, c: Computation) -> list[Group]:
        """The kernels of `c`, producers first; single instructions too."""
        order = c.post_order()
        for i in reversed(order):
            self._visit(i, i is c.root)
        return [self.groups[i] for i in order if i in self.groups]

    def _visit(self, i: Instruction, is_root: bool) -> None:
        fused_everywhere = False
        if self._is_producer(i) and (i.users or is_root):
            fused_everywhere = self._try(i, is_root)
        if fused_everywhere:
            return
        takes = is_consumer(i) or self._multiplies(i)
        if takes:
            self._takes.add(i)
        if takes or is_emitted(i):
            self.groups[i] = Group.of(i, self.limits.code, self._code_of)

    def _is_producer(self, i: Instruction) -> bool:
        return is_producer(i) or self._multiplies(i)

    def _multiplies(self, i: Instruction) -> bool:
        """Whether a kernel computes the product `i`."""
        if not self.machine.multiplies or i.control_predecessors or i.control_successors or stays_alone(i):
            return False
        return is_small_product(i)

    def _reads_old(self, root: Instruction) -> set[Instruction]:
        """Instructions that an updating `root` could absorb but must not: they read the elements it overwrites."""
        known = self._old.get(root)
        if known is None:
            overwritten = set(updated_operands(root))
            known = self._old[root] = _depending(root, overwritten, self._is_producer) if overwritten else set()
        return known

    def _readers(self, i: Instruction) -> tuple[dict[Group, list[Instruction]], Instruction | None]:
        """The kernels that could compute `i`, each with its members that read it, and a reader that needs it in
        memory, if any."""
        groups: dict[Group, list[Instruction]] = {}
        refused: dict[Group, Instruction] = {}
        in_memory: Instruction | None = None
        for user in i.users:
            inside_of = self._inside.get(user, ())
            own = self.groups.get(user)
            if not inside_of and own is None:
                in_memory = user
            for group in inside_of:
                groups.setdefault(group, []).append(user)
            if own is None:
                continue
            takes = user.op.is_elementwise or all(accepts(user, n) for n, o in enumerate(user.operands) if o is i)
            if takes and (user in self._takes or stays_alone(user) and (i.opcode == "constant" or is_generated(i))):
                groups.setdefault(own, []).append(user)
            else:
                refused[own] = user
        for group, user in refused.items():
            groups.pop(group, None)
            in_memory = user
        return groups, in_memory

    def _try(self, i: Instruction, is_root: bool) -> bool:
        """Fuse `i` where it pays; true when nobody needs it in memory any more."""
        groups, in_memory = self._readers(i)
        if not groups:
            if in_memory is not None and i.opcode != "constant":
                self._tell_needed(i, in_memory)
            return False
        counts = [(g, g.evaluations_of(i, members)) for g, members in groups.items()]
        if is_root or in_memory is not None:
            self._into_some(i, counts, in_memory, groups)
            return False
        for group, count in counts:
            why_not = self._forbidden(i, group, count, groups[group])
            if why_not:
                self.tell(False, why_not, i, group.root.name, None, None)
                self._into_some(i, [x for x in counts if x[0] is not group], group.root, groups)
                return False
        if len(counts) > 1 and any(g.shares(i, r) for g, r in groups.items()) and self._is_long(i):
            why_not = f"{len(counts)} kernels would have its code"
            self.tell(False, why_not, i, ", ".join([g.root.name for g in groups]), None, None)
            return False
        before = separate(self.machine, i, len(counts))
        after = sum(inside(self.machine, i, counts)) + self._repeated(i, counts, groups)
        after += self._in_cache(i, counts, groups)
        names = ", ".join([g.root.name for g in groups])
        slow, shared = self._slowed(i, counts, groups), self._shared(i, counts)
        one_by_one = after <= before and slow > _FAR_LONGER * before
        if (max(after, shared) > before or one_by_one) and not self._is_nothing(i):
            times = sum(n for _, n in counts) / max(1, i.shape.num_elements)
            why_not = "would go one by one" if one_by_one else f"would be computed {times:.3g} times per element"
            self.tell(False, why_not, i, names, before, max(after, slow, shared))
            self._into_some(i, counts, None, groups)
            return False
        for group, count in counts:
            group.add(i, count, groups[group])
        self._inside[i] = list(groups)
        why = "its only reader" if len(groups) == 1 else f"all {len(groups)} readers compute it themselves"
        if after > before:
            why += ": it reads no memory"
        self.tell(True, why, i, names, before, after)
        return True

    def _shared(self, i: Instruction, counts: list[tuple[Group, float]]) -> float:
        """The cost, in bytes, of computing `i` and all that its elements alone are made of in each kernel but one.

        Op by op it may seem to cost less than an array: a random number does, which has some 200 of them. Vectors hold
        half as many numbers of 64 bits.
        """
        if len(counts) < 2 or not self.machine.vectors or self._is_nothing(i):
            return 0.0
        if self._flops_of(i) + self._below(i, self._flops_of) < _MANY:
            return 0.0
        work = sum(map(self._flops_of, self._only_for(i))) * max(1.0, i.shape.element_type.bits / 32)
        return (len(counts) - 1) * i.shape.num_elements * work / self.machine.flops_per_byte

    def _only_for(self, i: Instruction) -> set[Instruction]:
        """`i` and the ops that an element of it is computed from at its own index, of which nothing else reads any."""
        found, waiting, stack = {i}, dict[Instruction, int](), [i]
        while stack:
            x = stack.pop()
            for o in dict.fromkeys(self._near[x] if x in self._near else self._at_its_index(x)):
                left = waiting.get(o, len(o.users)) - 1
                waiting[o] = left
                if not left:
                    found.add(o)
                    stack.append(o)
        return found

    def _slowed(
        self, i: Instruction, counts: list[tuple[Group, float]], readers: dict[Group, list[Instruction]]
    ) -> float:
        """The cost, in bytes, of computing `i` and all that its elements are made of outside of vectors. ``counts``,
        ``readers``: as in `_into_some`. Op by op they may seem to cost less than an array, of which a whole function
        needs just one."""
        if not self.machine.vectors:
            return 0.0
        slower = sum([(self._slowdown(i, group, readers[group]) - 1.0) * n for group, n in counts])
        if not slower:
            return 0.0
        return slower * (self._flops_of(i) + self._below(i, self._flops_of)) / self.machine.flops_per_byte

    def _slowdown(self, i: Instruction, group: Group, readers: list[Instruction]) -> float:
        """Times that an element of `i` takes longer in a kernel than in vector loops. Two loops are none: over the
        elements of a window, if that is too much code to be written out, and one with a branch for each element."""
        window = max([_window_of(r) for r in readers], default=1)
        if window > 1 and (self._code_of(i) + self._code_below(i)) * window > _MOST_WRITTEN_OUT:
            return max(group.slower, 2 * LANES)
        return max(group.slower, 2 * LANES) if group.branches else group.slower

    def _repeated(
        self, i: Instruction, counts: list[tuple[Group, float]], readers: dict[Group, list[Instruction]]
    ) -> float:
        """The cost, in bytes, of computing elements of `i` more than once, with all that they are computed from.
        ``counts``, ``readers``: as in `_into_some`."""
        again = sum(n for _, n in counts) - i.shape.num_elements * len(counts)
        called = sum(n for group, n in counts if group.copies_of(i, readers[group]) > 1)
        if again <= 0 and not called or self._is_nothing(i):
            return 0.0
        work = self._flops_of(i) + self._below(i, self._flops_of)
        cost = max(again, 0.0) * work / self.machine.flops_per_byte
        if called and self._code_below(i) > _MOST_INLINE:
            cost += called * (LANES - 1) * work / self.machine.flops_per_byte
        return cost

    def _in_cache(
        self, i: Instruction, counts: list[tuple[Group, float]], readers: dict[Group, list[Instruction]]
    ) -> float:
        """The cost, in bytes, of computing elements of a small array again in small kernels, with all that they are
        made of. ``counts``, ``readers``: as in `_into_some`.

        Loops over few elements are written out, and LLVM computes once what several places of a kernel ask for. It
        does not where a gather chooses the element, nor for several kernels. Several larger ones may still become one.
        """
        size = i.shape.num_elements
        if not self.machine.vectors or not 1 < size <= _CACHED or reindexes(i) or reads_part(i) or self._is_nothing(i):
            return 0.0
        small = [(g, n) for g, n in counts if g.root.shape.is_array and g.root.shape.num_elements <= _CACHED]
        is_tiny = max([size, *[g.root.shape.num_elements for g, _ in small]]) <= _TINY
        if is_tiny:
            is_few = size <= self.limits.code.few
            again = sum([min(n, size) if is_few and not g.chooses(i, readers[g]) else n for g, n in small]) - size
        else:
            again = sum([max(0.0, n - size) for _, n in small]) if i.op.is_elementwise else 0.0
        if again <= 0:
            return 0.0
        work = self._work_for(i, {g for g, _ in small})
        work = work * _OF_TINY if is_tiny else max(0.0, work - _READ) * _OF_CACHED
        return again * work / self.machine.flops_per_byte

    def _work_for(self, i: Instruction, groups: set[Group]) -> float:
        """The work for an element of `i`, with all that it is made of and that these kernels do not compute anyhow; of
        many ops, the nearest."""
        total, seen, stack = 0.0, {i}, [(i, 1.0)]
        while stack and len(seen) < _MOST_SEEN:
            x, part = stack.pop()
            total += part * self._flops_of(x)
            for n, o in enumerate(x.operands):
                if o not in seen and is_producer(o) and not self._is_read_in(o, groups):
                    seen.add(o)
                    stack.append((o, part * reads(x, n)))
        return total

    def _is_read_in(self, i: Instruction, groups: set[Group]) -> bool:
        """Whether one of these kernels reads `i`, as far as is known; that of many readers one does is likely."""
        if len(i.users) > _MOST_SEEN:
            return True
        return any(self.groups.get(u) in groups or not groups.isdisjoint(self._inside.get(u, ())) for u in i.users)

    def _into_some(
        self,
        i: Instruction,
        counts: list[tuple[Group, float]],
        needs: Instruction | None,
        readers: dict[Group, list[Instruction]],
    ) -> None:
        """`i` stays in memory: still compute it anew where that is cheaper than reading it. ``counts``: how often each
        kernel would compute it; ``readers``: its members that read it."""
        taken: list[Group] = []
        reading = float(i.shape.byte_size)
        for (group, count), cost in zip(counts, inside(self.machine, i, counts), strict=True):
            forbidden = self._forbidden(i, group, count, readers[group])
            if cost * 2 <= reading and not forbidden or i.opcode == "constant":
                group.add(i, count, readers[group])
                taken.append(group)
                if i.opcode != "constant":
                    self.tell(True, "cheaper to compute than to read", i, group.root.name, reading, cost)
        if taken:
            self._inside[i] = taken
        if needs is not None and len(taken) < len(counts):
            self._tell_needed(i, needs)

    def _code_below(self, i: Instruction) -> float:
        """LLVM instructions of what is computed for an element of `i` at its own index, `i` not included."""
        return self._below(i, self._code_of)

    def _code_of(self, i: Instruction) -> float:
        code = self._codes.get(i)
        if code is None:
            code = self._codes[i] = op_code(i, self.limits.code)
        return code

    def _flops_of(self, i: Instruction) -> float:
        flops = self._flops.get(i)
        if flops is None:
            flops = self._flops[i] = element_flops(i)
        return flops

    def _is_nothing(self, i: Instruction) -> bool:
        found = self._nothing.get(i)
        if found is None:
            found = self._nothing[i] = made_of_nothing(i)
        return found

    def _is_long(self, i: Instruction) -> bool:
        """Whether an element of `i`, or of what it is a view of, takes more code than LLVM copies."""
        while is_view(i):
            i = i.operands[0]
        return self._code_of(i) + self._code_below(i) > _MOST_INLINE

    def _below(self, i: Instruction, measure: Measure) -> float:
        """The sum of ``measure`` over the ops that compute an element of `i` at its own index, `i` not included."""
        found = self._sums.get((i, measure))
        if found is None:
            found = self._sums[i, measure] = self._sum_below(i, measure)
        return found

    def _sum_below(self, i: Instruction, measure: Measure) -> float:
        total, seen, stack = 0.0, {i}, [i]
        most, known = self.limits.code.most, self._near
        while stack and total < most:
            x = stack.pop()
            for o in known[x] if x in known else self._at_its_index(x):
                if o not in seen:
                    seen.add(o)
                    stack.append(o)
                    total += measure(o)
        return total

    def _at_its_index(self, i: Instruction) -> list[Instruction]:
        """The operands that an element of `i` is computed from at its own index, if that is done where it is read."""
        dims = i.shape.dims
        near = [o for o in i.operands if o.op.is_elementwise and o.shape.dims == dims and is_producer(o)]
        self._near[i] = near
        return near

    def _tell_needed(self, i: Instruction, needs: Instruction) -> None:
        self.tell(False, f"'{needs.name}' ({needs.opcode}) needs it in memory", i, needs.name, None, None)

    def _forbidden(self, i: Instruction, group: Group, count: float, users: list[Instruction]) -> str:
        """A reason that rules the pair out whatever it costs, or an empty text. ``users``: its readers there."""
        if len(group.evaluations) >= self.limits.instructions:
            return f"the kernel has {len(group.evaluations)} instructions already"
        if len(group.inputs) - 1 + len(i.operands) > self.limits.inputs:  # if all of them are new
            new = sum(o not in group and o not in group.inputs for o in dict.fromkeys(i.operands))
            if len(group.inputs) - 1 + new > self.limits.inputs:
                return f"the kernel would have more than {self.limits.inputs} inputs"
        if count > self.limits.recomputation * max(1, i.shape.num_elements) and not is_generated(i):
            if i.shape.num_elements > 1 and element_flops(i) > 0:
                return "most of it would be computed over and over"
        if group.spreads(i, users):
            return "its elements would be told apart anew for every element of the kernel"
        if self.machine.vectors and group.nests(i, users):
            return "its operand would be chosen anew for every element, inside of other concatenations"
        if not self.limits.masks and group.turns_functions(i):
            return "functions along short rows that are turned would go one by one"
        if i in self._reads_old(group.root):
            return "it is computed from what the kernel overwrites"
        most = self.limits.code.most
        if not (self._is_nothing(i) or _spreads_number(i) or _reads_stored(i)) and (
            group.is_full or group.code_with(i, users, self._code_below) > most
        ):
            group.is_full = True  # what comes next stays out, too: the kernel ends at values that lie side by side
            return f"the kernel would become more than {most:.0f} LLVM instructions"
        return ""


def made_of_nothing(i: Instruction) -> bool:
    """Whether `i` is a few simple operations on positions and constants, a mask for example: quicker than a load."""
    left, work = _SIMPLE, [i]
    while work:
        o = work.pop()
        if o.opcode == "constant" and o.shape.is_scalar or o.opcode == "iota":
            continue
        if o.opcode != "broadcast" and not (o.op.is_elementwise and element_flops(o) <= 1):
            return False
        left -= 1
        if left < 0:
            return False
        work.extend(o.operands)
    return True


def _window_of(i: Instruction) -> int:
    """The elements of a window that a kernel of `i` reads for each result, unless it is a scan."""
    if i.opcode != "reduce-window" or is_long_scan(i):
        return 1
    return prod([w.size for w in i.window or ()])


def _spreads_number(i: Instruction) -> bool:
    """Whether a kernel reads a number where it would read an array that is full of it: that is no more code."""
    return i.opcode == "broadcast" and i.operands[0].shape.is_scalar


def _reads_stored(i: Instruction) -> bool:
    """Whether a kernel reads elements of an array where it would read a part of the array that was copied."""
    return reindexes(i) and not is_producer(i.operands[0]) and i.opcode != "broadcast"


def _depending(
    root: Instruction, sources: set[Instruction], is_producer: Callable[[Instruction], bool]
) -> set[Instruction]:
    """Producers above `root` that read one of `sources`, directly or through other producers."""
    order: list[Instruction] = []
    seen = {root}
    stack = [(root, iter(root.operands))]
    while stack:
        i, rest = stack[-1]
        operand = next((o for o in rest if o not in seen and is_producer(o)), None)
        if operand is None:
            order.append(i)
            stack.pop()
        else:
            seen.add(operand)
            stack.append((operand, iter(operand.operands)))
    found: set[Instruction] = set()
    for i in order:
        if any(o in sources or o in found for o in i.operands):
            found.add(i)
    return found
