"""Kernels in the making: what each computes and reads, who reads it, and what may be put together."""

from __future__ import annotations

from collections.abc import Iterator

from heron.analysis.cost.code_size import CodeLimit, asked_of, at_most, code_of, op_code
from heron.analysis.cost.compose import Work, work_of
from heron.analysis.cost.estimate import Clock
from heron.analysis.fusion.roles import accepts, is_consumer, is_emitted, is_producer, is_view, stays_alone
from heron.analysis.indexing.hlo_maps import MOST_DIVISIONS, divides_index, divisions
from heron.hlo.facts import is_generated, updated_operands
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.updates import Updates

#: a reduce of at most so many elements to one is done by the thread that wants the result
SHORT_SUM = 8
#: what takes no more flops an element than this is cheap: how often it is computed is for the model to weigh
CHEAP = 4.0
#: elements of anything else computed for each one needed, at most
RECOMPUTATION = 32.0


class Kernel:
    """A kernel in the making: its root, all it computes, and its work.

    ``refused``: inputs it must find in memory. ``overwritten``: inputs whose buffers it writes its result into.
    ``code``: LLVM instructions it becomes at most; ``asked``: for each input whether it is read where the result is
    computed, and in how many other places. ``divisions``: members that are views which take dimensions apart.
    """

    __slots__ = (
        "asked",
        "code",
        "divisions",
        "limit",
        "members",
        "number",
        "overwritten",
        "refused",
        "root",
        "seconds",
        "work",
    )

    def __init__(self, root: Instruction, number: int, whole: bool, clock: Clock, limit: CodeLimit) -> None:
        self.root, self.number, self.limit = root, number, limit
        self.work = work_of(root, clock, in_place=not whole)
        self.members: dict[Instruction, None] = {root: None}
        self.overwritten = frozenset() if whole else frozenset(updated_operands(root))
        self.refused = frozenset(
            o
            for n, o in enumerate(root.operands)
            if o.opcode != "constant" and not whole and not accepts(root, n) or stays_alone(root) and not _is_free(o)
        )
        self.seconds = self.work.seconds
        self.code, self.asked = op_code(root, limit), asked_of(root)
        self.divisions = int(divides_index(root))

    def copies(self, x: Instruction) -> int:
        """In how many places it would compute its input `x`."""
        return at_most(x, sum(self.asked.get(x, (0, 1))), self.limit)

    def take_code(self, x: Instruction, code: float, asked: dict[Instruction, tuple[int, int]]) -> None:
        """Compute the input `x` by so much code, which asks for inputs of its own."""
        self.code += code * self.copies(x)
        own, other = self.asked.pop(x, (0, 1))
        for y, (y_own, y_other) in asked.items():
            had_own, had_other = self.asked.get(y, (0, 0))
            self.asked[y] = max(had_own, own * y_own), had_other + own * y_other + other * (y_own + y_other)


class Kernels:
    """All kernels of a computation. Ops that cost nothing (constants, views, broadcasts) are in their readers
    already."""

    def __init__(self, c: Computation, clock: Clock, inputs: int, instructions: int, limit: CodeLimit) -> None:
        self.computation, self.clock, self.inputs, self.instructions = c, clock, inputs, instructions
        self.limit = limit
        self.updates = Updates(c)
        self.order = c.post_order()
        self.of: dict[Instruction, Kernel] = {}
        self.readers: dict[Instruction, dict[Kernel, None]] = {}
        self.needed: dict[Instruction, Instruction] = {}
        self.free: dict[Instruction, dict[Kernel, None]] = {}
        for number, i in enumerate(self.order):
            if is_emitted(i) or is_consumer(i):
                whole = i.opcode == "dynamic-update-slice" and self.updates.writes_all(i)
                self.of[i] = Kernel(i, number, whole, clock, limit)
        for kernel in reversed(list(self.of.values())):
            self._take_in_free(kernel)
        self._find_needed()
        for kernel in reversed(list(self.of.values())):
            self.drop_if_dead(kernel)

    def may_move(self, kernel: Kernel) -> bool:
        """Whether the readers of a kernel could compute it themselves."""
        i = kernel.root
        if is_producer(i):
            return True
        if i.control_predecessors or i.control_successors or not i.shape.is_array or stays_alone(i):
            return False
        if i.opcode == "reduce":
            return i.operands[0].shape.num_elements <= SHORT_SUM * i.shape.num_elements
        return i.opcode == "dynamic-update-slice" and not kernel.overwritten

    def producers(self, kernel: Kernel) -> Iterator[Kernel]:
        """The kernels whose results a kernel reads."""
        for x in kernel.work.reads:
            if (producer := self.of.get(x)) is not None:
                yield producer

    def against(self, producer: Kernel, reader: Kernel) -> str:
        """A reason that rules a pair out whatever it costs; empty when there is none."""
        x = producer.root
        if x in reader.refused:
            return f"'{reader.root.name}' ({reader.root.opcode}) needs it in memory"
        if not reader.refused.isdisjoint(producer.members):
            return f"it computes itself what '{reader.root.name}' ({reader.root.opcode}) needs in memory"
        if not reader.overwritten.isdisjoint(producer.work.reads):
            return "it is computed from what the kernel overwrites"
        if len(reader.members) + len(producer.members) > self.instructions:
            return f"the kernel would have more than {self.instructions} instructions"
        if reader.divisions + producer.divisions > MOST_DIVISIONS:  # unless they are on different ways
            if divisions(reader.root, reader.members | producer.members) > MOST_DIVISIONS:
                return f"elements would be found through more than {MOST_DIVISIONS} divisions of an index"
        if len(reader.work.reads) + len(producer.work.reads) - 1 > self.inputs:
            together = reader.work.reads.keys() | producer.work.reads.keys()
            if len(together) - 1 > self.inputs:
                return f"the kernel would have more than {self.inputs} inputs"
        if x.shape.num_elements > 1 and producer.work.flops > CHEAP * x.shape.num_elements:
            if reader.work.times_computed(x) > RECOMPUTATION * x.shape.num_elements:
                return "most of it would be computed over and over"
        if reader.code + producer.code * reader.copies(x) > self.limit.most:  # unless they share some of it
            if code_of([reader.root], reader.members | producer.members, self.limit) > self.limit.most:
                return f"the kernel would become more than {self.limit.most:.0f} LLVM instructions"
        return ""

    def slower_by(self, producer: Kernel, reader: Kernel) -> float:
        """Seconds that a reader takes more when it computes the producer itself."""
        return reader.work.slower_by(producer.root, producer.work)

    def fuse(self, producer: Kernel, reader: Kernel) -> None:
        """Let a reader compute the producer itself."""
        self._take(reader, producer.root, producer.work, producer.members)
        reader.take_code(producer.root, producer.code, producer.asked)
        if reader.code > self.limit.most:
            reader.code = code_of([reader.root], reader.members, self.limit)
        reader.refused |= producer.refused & reader.work.reads.keys()

    def drop_if_dead(self, kernel: Kernel) -> bool:
        """Forget a kernel that nobody reads any more."""
        if self.readers.get(kernel.root) or kernel.root in self.needed or self.of.get(kernel.root) is not kernel:
            return False
        del self.of[kernel.root]
        for x in kernel.work.reads:
            del self.readers[x][kernel]
        return True

    # -- parts -------------------------------------------------------------------------------------------------------
    def _take_in_free(self, kernel: Kernel) -> None:
        waiting = list(kernel.root.operands)
        for x in kernel.work.reads:
            self.readers.setdefault(x, {})[kernel] = None
        while waiting:
            x = waiting.pop()
            if x in kernel.members and x not in kernel.work.reads:
                continue  # it may be read again by what was taken in later
            if x.opcode == "constant" and x.shape.is_scalar:
                kernel.members[x] = None
                if x in kernel.work.reads:
                    kernel.work.drop(x)
                    del self.readers[x][kernel]
            elif x not in kernel.refused and is_producer(x) and _is_free(x):
                if not kernel.overwritten.isdisjoint(x.operands) or x not in kernel.work.reads:
                    continue
                self.free.setdefault(x, {})[kernel] = None
                self._take(kernel, x, work_of(x, self.clock), {x: None})
                kernel.take_code(x, op_code(x, self.limit), asked_of(x))
                waiting += x.operands
        kernel.seconds = kernel.work.seconds

    def _take(self, reader: Kernel, x: Instruction, work: Work, members: dict[Instruction, None]) -> None:
        reader.work.take(x, work)
        reader.divisions += sum(divides_index(i) for i in members if i not in reader.members)
        reader.members |= members
        del self.readers[x][reader]
        for y in work.reads:
            if y in reader.work.reads:
                self.readers.setdefault(y, {})[reader] = None
        for y in reader.work.reads.keys() & members.keys():  # what was read and is computed now
            reader.work.drop(y)
            del self.readers[y][reader]
        reader.seconds = reader.work.seconds

    def _find_needed(self) -> None:
        """Find values that must be in memory: operands of instructions that are not kernels, except through views."""
        for i in reversed(self.order):
            if i.is_root:
                self.needed[i] = i
            for user in i.users:
                if user in self.of:
                    continue
                if user not in self.free or user in self.needed or self.readers.get(user):
                    self.needed[i] = self.needed.get(user, user) if user in self.free else user


def _is_free(i: Instruction) -> bool:
    """Whether computing elements of `i` takes no more than reading them."""
    return is_generated(i) or is_view(i)
