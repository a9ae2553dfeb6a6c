"""Module: a whole program: computations, one of them the entry, and what XLA's header line says of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.ir.aliasing import BufferDonors, InputOutputAliases
from heron.hlo.ir.computation import Computation, as_html, remap_calls
from heron.hlo.ir.dynamic_parameters import DynamicParameters
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.names import Names
from heron.hlo.ir.op import REGISTRY, Trait
from heron.hlo.ir.order import computation_order, print_order
from heron.hlo.ir.providers import provided
from heron.hlo.ir.shape import Shape

if TYPE_CHECKING:
    from heron.hlo.sharding import Sharding


class Module:
    """Computations by insertion order; names of computations and of instructions are unique in the module.

    ``entry_layout``: parameter shapes and result shape, with layouts, as callers see them; None until known (then the
    entry computation's own shapes count). ``header``: the other fields of the ``HloModule`` line, parsed where heron
    uses them. ``schedule``: execution order per computation once a scheduler ran. ``filename``: where it came from.

    Fields that only protocol buffers have: ``spmd_parameter_shardings`` and ``spmd_output_sharding`` after partitioning
    (as text), ``cross_program_prefetches`` (parameter, index, offset), ``carried``: fields kept as they came, unread.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.filename = "<module>"
        self._computations: dict[Computation, None] = {}
        self.entry: Computation = None  # type: ignore[assignment]
        self.entry_layout: tuple[tuple[Shape, ...], Shape] | None = None
        self.header: dict[str, Any] = {}
        self.schedule: dict[Computation, list[Instruction]] | None = None
        self.spmd_parameter_shardings: tuple[str, ...] | None = None
        self.spmd_output_sharding: str | None = None
        self.cross_program_prefetches: tuple[tuple[int, tuple[int, ...], int], ...] = ()
        self.carried = b""
        #: when the verifier found no fault, and the roots and the entry layout then; see `heron.hlo.verifier`
        self.verified: tuple[int, tuple[object, ...]] = (0, ())
        self._names, self._computation_names = Names(), Names()

    def __reduce__(self) -> tuple[object, ...]:
        return provided("from_proto"), (provided("to_proto")(self), self.filename)

    def __str__(self) -> str:
        return provided("print_module")(self)

    def __repr__(self) -> str:
        return f"<module {self.name}: {len(self._computations)} computations>"

    def _repr_html_(self) -> str:
        return as_html(str(self))

    # -- questions ---------------------------------------------------------------------------------------------------
    @property
    def computations(self) -> list[Computation]:
        return list(self._computations)

    def computation(self, name: str) -> Computation:
        """The computation of that name. Raises HLO021 when there is none."""
        import difflib

        for c in self._computations:
            if c.name == name:
                return c
        near = difflib.get_close_matches(name, [c.name for c in self._computations], 1)
        hint = f"did you mean '{near[0]}'?" if near else None
        raise HeronError("HLO021", f"no computation '{name}' in module '{self.name}'", hint=hint)

    def instructions(self) -> Iterator[Instruction]:
        """Every instruction of every computation."""
        for c in self._computations:
            yield from c.instructions

    def instruction_count(self) -> int:
        return sum([len(c._instructions) for c in self._computations])  # pyright: ignore[reportPrivateUsage]

    @property
    def parameter_shapes(self) -> tuple[Shape, ...]:
        """The entry's parameters as callers see them."""
        return self.entry_layout[0] if self.entry_layout else tuple(p.shape for p in self.entry.parameters)

    @property
    def result_shape(self) -> Shape:
        """The entry's result as callers see it."""
        return self.entry_layout[1] if self.entry_layout else self.entry.root.shape

    @property
    def replica_count(self) -> int:
        """The number of replicas that run the program, each on data of its own."""
        return self.header.get("replica_count", 1)

    @property
    def num_partitions(self) -> int:
        """The number of devices that one replica is spread over."""
        return self.header.get("num_partitions", 1)

    @property
    def dynamic_parameters(self) -> DynamicParameters:
        """The parameters that hold sizes of others. Raises HLO028 if the header's text of it is invalid."""
        return DynamicParameters(self)

    @property
    def input_output_aliases(self) -> InputOutputAliases:
        """The parts of the result that share the memory of parts of parameters."""
        return InputOutputAliases(self)

    @property
    def buffer_donors(self) -> BufferDonors:
        """The parts of parameters that may be overwritten."""
        return BufferDonors(self)

    @property
    def parameter_shardings(self) -> tuple[Sharding | None, ...]:
        """The shardings of the entry's parameters: those from before partitioning, or the parameters' own."""
        if self.spmd_parameter_shardings is not None:
            return tuple(map(provided("parse_sharding"), self.spmd_parameter_shardings))
        return tuple(p.sharding for p in self.entry.parameters)

    @property
    def output_sharding(self) -> Sharding | None:
        """The sharding of the result: that from before partitioning, or the root's own."""
        text = self.spmd_output_sharding
        return self.entry.root.sharding if text is None else provided("parse_sharding")(text)

    @property
    def is_scheduled(self) -> bool:
        return self.schedule is not None

    def post_order(self) -> list[Computation]:
        """Computations, callees before callers; those nobody calls from the entry come too."""
        done: set[Computation] = set()
        order: list[Computation] = []

        def visit(start: Computation) -> None:
            stack: list[tuple[Computation, Iterator[Computation]]] = [(start, iter(_callees(start)))]
            done.add(start)
            while stack:
                c, rest = stack[-1]
                callee = next((k for k in rest if k not in done), None)
                if callee is None:
                    order.append(c)
                    stack.pop()
                    continue
                done.add(callee)
                stack.append((callee, iter(_callees(callee))))

        for c in self._computations:
            if c not in done and c is not self.entry:
                visit(c)
        if self.entry is not None and self.entry not in done:  # pyright: ignore[reportUnnecessaryComparison]
            visit(self.entry)
        return order

    def callers(self) -> dict[Computation, list[Instruction]]:
        """For each computation, the instructions that call it."""
        found: dict[Computation, list[Instruction]] = {c: [] for c in self._computations}
        for i in self.instructions():
            for callee in i.called:
                found[callee].append(i)
        return found

    def fusion_bodies(self) -> set[Computation]:
        """Computations that are bodies of fusions, without what those call."""
        return {i.attrs["calls"] for i in self.instructions() if i.opcode == "fusion"}

    def fusion_computations(self) -> set[Computation]:
        """Computations that are bodies of fusions (and what those call)."""
        found: set[Computation] = set()
        work = [i.attrs["calls"] for i in self.instructions() if i.opcode == "fusion"]
        while work:
            c = work.pop()
            if c not in found:
                found.add(c)
                work.extend(_callees(c))
        return found

    def computations_to_rewrite(self) -> list[Computation]:
        """The computations that the entry needs, without bodies of fusions: each of those is one finished kernel."""
        calling, fused = _calling(), set[Computation]()
        live, work = {self.entry}, [self.entry]
        while work:
            for i in work.pop()._instructions:  # pyright: ignore[reportPrivateUsage]
                if i.opcode not in calling:
                    continue
                if i.opcode == "fusion":
                    fused.add(i.attrs["calls"])
                for c in _called(i, calling[i.opcode]):
                    if c not in live:
                        live.add(c)
                        work.append(c)
        return [c for c in self._computations if c in live and c not in fused]

    def non_fusion_computations(self) -> list[Computation]:
        """Computations that run as control flow: callees first, without fusion bodies and reducers."""
        sequential = self._sequential()
        return [c for c in self.post_order() if c in sequential]

    def _sequential(self) -> set[Computation]:
        found, control = {self.entry}, _control_flow()
        work = [self.entry]
        while work:
            for i in work.pop()._instructions:  # pyright: ignore[reportPrivateUsage]
                if i.opcode in control:
                    for c in i.called:
                        if c not in found:
                            found.add(c)
                            work.append(c)
        return found

    def need_bounds(self) -> None:
        """Raises HLO031 when a dimension has no bound (``?``): such a program can be read, written and copied only."""
        for i in self.instructions():
            if i.shape.is_unbounded:
                hint = "give it a bound: f32[<=N]"
                raise HeronError("HLO031", f"'{i.name}' has a dimension without a bound", where=str(i), hint=hint)

    # -- changes -----------------------------------------------------------------------------------------------------
    def unique_name(self, wanted: str) -> str:
        """`wanted` if it is free, else with a fresh number; the name is taken from now on."""
        return self._names.take(wanted)

    def add_computation(self, c: Computation, entry: bool = False) -> Computation:
        """Take a computation in; its name and its instructions' names are made unique."""
        c.name = self._computation_names.take(c.name)
        c.module = self
        self._computations[c] = None
        take = self._names.take
        for i in c.instructions:
            i.name = take(i.name)
        if entry:
            self.entry = c
        return c

    def remove_computation(self, c: Computation) -> None:
        """Drop a computation nobody calls. Raises HLO021 when it is not of this module, or the entry."""
        if c not in self._computations or c is self.entry:
            why = "it is the entry" if c is self.entry else f"it is not in module '{self.name}'"
            raise HeronError("HLO021", f"'{c.name}' cannot be removed", why=why)
        del self._computations[c]
        c.module = None
        if self.schedule is not None:
            self.schedule.pop(c, None)

    def replace_computations(self, replacements: dict[Computation, Computation]) -> None:
        """Call the new computations (added already) instead of the old ones, and drop those; the entry counts too."""
        for i in self.instructions():
            if i.attrs:
                remap_calls(i, replacements)
        if self.entry in replacements:
            self.replace_entry(replacements[self.entry])
        for c in replacements:
            if c in self._computations:
                self.remove_computation(c)

    def replace_entry(self, c: Computation) -> None:
        """Make a computation of the module the entry; the layouts callers see are its own from now on."""
        self.entry, self.entry_layout = c, None

    def set_counts(self, replica_count: int = 1, num_partitions: int = 1) -> None:
        """Say how many devices run the program. Raises HLO025 for less than one."""
        for name, count in (("replica_count", replica_count), ("num_partitions", num_partitions)):
            if count < 1:
                raise HeronError("HLO025", f"{name} is {count}", why="a program runs on at least one device")
            self.header.pop(name, None)
            if count > 1:
                self.header[name] = count

    def set_schedule(self, schedule: dict[Computation, list[Instruction]]) -> None:
        """Fix the execution order. Raises HLO110 when it is none, and leaves things as they were then."""
        before, self.schedule = self.schedule, {c: list(order) for c, order in schedule.items()}
        try:
            self.verify_schedule()
        except HeronError:
            self.schedule = before
            raise

    def clear_schedule(self) -> None:
        """Forget the execution order."""
        self.schedule = None

    def update_schedule(self) -> None:
        """Make the schedule whole again after changes: what is gone drops out, what is new comes as soon as it can.

        Instructions that were scheduled before keep their order as far as dependencies allow. Computations that run in
        sequence now get an order, if there is any; bodies of fusions have none. Raises HLO020 when there is a cycle.
        """
        if self.schedule is None:
            return
        known, fused = self.schedule, self.fusion_bodies()
        in_sequence = dict.fromkeys([*known, *self.non_fusion_computations()]) if known else {}
        self.schedule = {c: _completed(c, known.get(c, [])) for c in in_sequence if c.module is self and c not in fused}

    def verify_schedule(self) -> None:
        """Raises HLO110 when the schedule is no order of the instructions that keeps their dependencies."""
        for problem in provided("schedules_are_orders")(self):
            raise problem.error()

    def cleanup(self) -> None:
        """Put computations and instructions in the order they print, and free the names nobody has any more."""
        for c in self._computations:
            c.reorder(print_order(c))
        self._computations = dict.fromkeys(computation_order(self))  # which follows the order in each
        self._names, self._computation_names = Names(), Names()
        for c in self._computations:
            self._computation_names.take(c.name)
            for i in c._instructions:  # pyright: ignore[reportPrivateUsage]
                self._names.take(i.name)

    def unused_computations(self) -> list[Computation]:
        """The computations that cannot be reached from the entry."""
        live: set[Computation] = set()
        work = [self.entry]
        while work:
            c = work.pop()
            if c not in live:
                live.add(c)
                work.extend(_callees(c))
        return [c for c in self._computations if c not in live]

    def remove_unused_computations(self) -> bool:
        """Drop what cannot be reached from the entry; tells whether anything was dropped."""
        dead = self.unused_computations()
        for c in dead:
            self.remove_computation(c)
        return bool(dead)

    def clone(self, suffix: str = "", instructions: dict[Instruction, Instruction] | None = None) -> Module:
        """A deep copy with the same names, the module's with ``-suffix`` behind it where one is given.

        `instructions`, where given, is filled with what each instruction became.
        """
        copy = Module(f"{self.name}-{suffix}" if suffix else self.name)
        copy.filename, copy.entry_layout, copy.header = self.filename, self.entry_layout, dict(self.header)
        copy.spmd_parameter_shardings = self.spmd_parameter_shardings
        copy.spmd_output_sharding = self.spmd_output_sharding
        copy.cross_program_prefetches, copy.carried = self.cross_program_prefetches, self.carried
        clones: dict[Computation, Computation] = {}
        for c in self.post_order():
            clones[c] = c.clone(calls=clones)
        instructions = {} if instructions is None else instructions
        for c in self._computations:
            new = clones[c]
            new.module = copy
            copy._computations[new] = None
            instructions.update(zip(c.instructions, new.instructions, strict=True))
        copy.entry = clones[self.entry]
        copy._names, copy._computation_names = self._names.copy(), self._computation_names.copy()
        if self.schedule is not None:
            copy.schedule = {
                clones[c]: [instructions[i] for i in order] for c, order in self.schedule.items() if c in clones
            }
        return copy

    def become(self, other: Module) -> None:
        """Be what `other` is, which is used up: its computations belong to this module now."""
        self.__dict__.update(other.__dict__)
        for c in self._computations:
            c.module = self


def _completed(c: Computation, order: list[Instruction]) -> list[Instruction]:
    """All instructions of `c`: those in `order` as they stand there, the others behind the last they depend on."""
    place = {i: n for n, i in enumerate(order) if i.parent is c}
    position = {i: n for n, i in enumerate(c.post_order())}
    for i in position:
        earliest = max((place[before] for before in (*i.operands, *i.control_predecessors)), default=-1)
        place[i] = max(place.get(i, -1), earliest)
    return sorted(place, key=lambda i: (place[i], position[i]))


def _callees(c: Computation) -> list[Computation]:
    calling = _calling()
    instructions = c._instructions  # pyright: ignore[reportPrivateUsage]
    return [callee for i in instructions if i.opcode in calling for callee in _called(i, calling[i.opcode])]


def _called(i: Instruction, names: tuple[str, ...]) -> Iterable[Computation]:
    """`Instruction.called`, knowing the attributes that name computations."""
    found: list[Computation] = []
    for name in names:
        value = i.attrs.get(name)
        if value is not None:
            found += value if isinstance(value, tuple) else (value,)
    return found


@cache
def _control_flow() -> frozenset[str]:
    """Opcodes whose computations run as control flow."""
    return frozenset(op.name for op in REGISTRY.values() if Trait.CONTROL_FLOW in op.traits)


@cache
def _calling() -> dict[str, tuple[str, ...]]:
    """Opcodes that have computations, with the attributes that name them."""
    return {op.name: op.calling for op in REGISTRY.values() if op.calling}
