"""The ways in which the ops of a computation are computed, what is resharded for them, and what all of it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from heron.analysis.sharding.choice import Choice, compute_shardings
from heron.analysis.sharding.cost import reshard_bytes
from heron.analysis.sharding.fixed import fixed_values
from heron.analysis.sharding.memory import Held
from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.question import Asked
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import TensorSharding


class Ways:
    """The way in which each op of a computation is computed: the cheapest for what propagation wants, to begin with.

    Attributes:
        has: the sharding that each array value has when it is computed; None where every device can make any part.
        moved: the bytes that reshards of a value send, for values that are resharded.
    """

    def __init__(self, c: Computation, shardings: ProgramShardings) -> None:
        self.shardings, self.mesh = shardings, shardings.mesh
        self.order, self.root = c.post_order(), c.root
        self.place = {i: n for n, i in enumerate(self.order)}
        self.fixed = set(fixed_values(c, shardings))
        self.has: dict[Instruction, TensorSharding | None] = {}
        self._facts: dict[Instruction, Asked | None] = {}
        #: the way in which an op is computed; of `matching` ops only where it was asked for
        self._choices: dict[Instruction, Choice] = {}
        #: elementwise ops whose arrays all have the sharding that is wanted for the result
        self._matching: set[Instruction] = set()
        resharded: set[Instruction] = set()
        for i in self.order:
            resharded.update(i.operands if i.opcode == "tuple" else self._begin(i))
        self.first = dict(self._choices)
        self.moved = {i: moved for i in self.order if i in resharded and (moved := self._moved(i))}
        self.held = Held(self.order, self.mesh, self.has, self.moved, self._choices)
        self.peak = self.held.fill() if self.moved else 0.0

    def _begin(self, i: Instruction) -> list[Instruction]:
        """Find the way to compute `i` as propagation wants it; the operands that are resharded for it."""
        if i.shape.is_array:
            self.has[i] = None if self._is_free(i) else self._wanted(i)
        if not self._chooses(i):
            return []
        wanted = self._wanted(i) if i.shape.is_array else TensorSharding.whole(0)
        if i.op.is_elementwise and not wanted.unreduced and self._is_matching(i, wanted):
            self._matching.add(i)
            return []
        self._put(i, self._way(i, self._operands(i), self._results(i)))
        sent = self._choices[i].sent
        return [o for o, moved in zip(i.operands, sent, strict=False) if moved]

    def _is_matching(self, i: Instruction, wanted: TensorSharding) -> bool:
        return all(not o.shape.rank or (has := self.has[o]) is None or has == wanted for o in i.operands)

    # -- the program -------------------------------------------------------------------------------------------------
    def _chooses(self, i: Instruction) -> bool:
        """Whether the search knows in what ways `i` can be computed."""
        return all(o.shape.is_array for o in i.operands) and self.asked(i) is not None

    def asked(self, i: Instruction) -> Asked | None:
        """The facts of an op that choices depend on, found once."""
        if i not in self._facts:
            self._facts[i] = Asked.of(i)
        return self._facts[i]

    def _way(
        self, i: Instruction, operands: Sequence[TensorSharding | None], results: Sequence[TensorSharding | None]
    ) -> Choice:
        return compute_shardings(i, operands, results, self.mesh, asked=self.asked(i), moves=True)

    def _is_free(self, i: Instruction) -> bool:
        """Whether every device can make any part of the value from nothing."""
        if i in self.fixed or i.opcode == "parameter" or i.has_side_effect:
            return False
        if not i.shape.rank or i.op.max_operands == 0:
            return True
        return (
            i.op.max_operands != 0
            and all(o.shape.is_array and (not o.shape.rank or self.has.get(o, self) is None) for o in i.operands)
            and self._chooses(i)
        )

    def _wanted(self, i: Instruction) -> TensorSharding:
        return self.shardings.of(i).close()

    def _results(self, i: Instruction) -> list[TensorSharding]:
        """The shardings that propagation wants for the arrays that `i` gives."""
        return [self.shardings.of(i, index).close() for index, s in i.shape.leaves() if s.is_array]

    def _operands(self, i: Instruction) -> list[TensorSharding | None]:
        return [self.has[o] for o in i.operands]

    # -- cost --------------------------------------------------------------------------------------------------------
    def choice(self, i: Instruction) -> Choice | None:
        """The way in which `i` is computed; None for an op without a rule."""
        found = self._choices.get(i)
        if found is None and i in self._matching:
            wanted = self._wanted(i)
            operands = [wanted if self.has[o] is not None and o.shape.rank else None for o in i.operands]
            found = self._choices[i] = self._way(i, operands, [wanted])
            self.first[i] = found
        return found

    def is_chosen(self, i: Instruction) -> bool:
        return i in self._choices or i in self._matching

    def _own(self, i: Instruction, choice: Choice) -> float:
        """The cost of computing a value, without that of its operands. Unless it is fixed, it stays as it comes."""
        return choice.own_cost - (0.0 if i in self.fixed else choice.sent[-1])

    def _moved(self, i: Instruction) -> float:
        """Bytes that all reshards of a value send."""
        has = self.has.get(i)
        if has is None or not has.rank:
            return 0.0
        return sum([reshard_bytes(self.mesh, i.shape, has, need) for need in self._needs(i)])

    def _needs(self, i: Instruction) -> Iterator[TensorSharding]:
        """The shardings that users need, each once."""
        found: set[TensorSharding] = set()
        for user in i.users:
            for n, o in enumerate(user.operands):
                if o is i and (need := self._need(user, n)) is not None and need not in found:
                    found.add(need)
                    yield need
        if i is self.root and not i.shape.is_tuple and i not in self.fixed:
            yield self._wanted(i)

    def _need(self, user: Instruction, n: int) -> TensorSharding | None:
        choice = self._choices.get(user)
        if choice is not None:
            return choice.operands[n]
        if user in self._matching:
            return self._wanted(user)
        if user.opcode == "tuple":
            return self.shardings.of(user, (n,)).close()
        return None

    def total(self) -> float:
        """The cost of the computation: of all values and all reshards."""
        own = sum([self._own(i, way) for i in self.order if (way := self.choice(i)) is not None])
        return own + sum(self.moved.values())

    def memory(self, called: Mapping[Instruction, float]) -> float:
        """The most bytes that a device has at a time in values that are no parameters; `called` see `Held.fill`."""
        return self.held.fill(False, called)

    # -- changes -----------------------------------------------------------------------------------------------------
    def _note_moved(self, i: Instruction, moved: float) -> None:
        if moved:
            self.moved[i] = moved
        else:
            self.moved.pop(i, None)

    def _take_back(self, log: dict[Instruction, Choice]) -> None:
        for j, choice in log.items():
            self._put(j, choice)

    def _set(self, i: Instruction, choice: Choice, log: dict[Instruction, Choice]) -> None:
        old = self.choice(i)
        if old is not None and choice is not old and choice != old:
            log.setdefault(i, old)
            self._put(i, choice)

    def _put(self, i: Instruction, choice: Choice) -> None:
        self._choices[i] = choice
        if self.has.get(i) is not None and i not in self.fixed:
            self.has[i] = choice.results[0]
