"""Assigns instructions to kernels: the decisions of instruction-fusion."""

from __future__ import annotations

from collections.abc import Callable

from heron.analysis.cost import element_flops
from heron.analysis.cost.code_size import CPU_CODE, CodeLimit
from heron.analysis.fusion.roles import accepts, is_consumer, is_emitted, is_producer, stays_alone
from heron.analysis.fusion.small_products import is_small_product
from heron.analysis.indexing.hlo_maps import MOST_DIVISIONS
from heron.hlo.facts import is_generated, reindexes, updated_operands
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.anew import Recomputation
from heron.passes.fusion.model.group import Group
from heron.passes.fusion.model.traffic_model import Machine, inside, separate
from heron.records import dataclass

#: (fused?, reason, producer, consumer or "", cost before, cost after)
Tell = Callable[[bool, str, Instruction, str, float | None, float | None], None]

#: times that a function which would go one by one must cost of an array to be computed ahead
_FAR_LONGER = 2.0


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
        self._anew = Recomputation(machine, limits.code, self.groups, self._inside)

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
            self.groups[i] = Group.of(i, self.limits.code, self._anew.code_of)

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
            takes = user.op.is_elementwise or all(accepts(user, n) for n in user.places_of(i))
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
        if len(counts) > 1 and any(g.shares(i, r) for g, r in groups.items()) and self._anew.is_long(i):
            why_not = f"{len(counts)} kernels would have its code"
            self.tell(False, why_not, i, ", ".join([g.root.name for g in groups]), None, None)
            return False
        before = separate(self.machine, i, len(counts))
        after = sum(inside(self.machine, i, counts)) + self._anew.repeated(i, counts, groups)
        after += self._anew.in_cache(i, counts, groups)
        names = ", ".join([g.root.name for g in groups])
        slow, shared = self._anew.slowed(i, counts, groups), self._anew.shared(i, counts)
        one_by_one = after <= before and slow > _FAR_LONGER * before
        if (max(after, shared) > before or one_by_one) and not self._anew.is_nothing(i):
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
        if group.divisions_at(i, users) > MOST_DIVISIONS:
            return f"its elements would be found through more than {MOST_DIVISIONS} divisions of an index"
        if self.machine.vectors and group.nests(i, users):
            return "its operand would be chosen anew for every element, inside of other concatenations"
        if not self.limits.masks and group.turns_functions(i):
            return "functions along short rows that are turned would go one by one"
        if i in self._reads_old(group.root):
            return "it is computed from what the kernel overwrites"
        most = self.limits.code.most
        if not (self._anew.is_nothing(i) or _spreads_number(i) or _reads_stored(i)) and (
            group.is_full or group.code_with(i, users, self._anew.code_below) > most
        ):
            group.is_full = True  # what comes next stays out, too: the kernel ends at values that lie side by side
            return f"the kernel would become more than {most:.0f} LLVM instructions"
        return ""


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
