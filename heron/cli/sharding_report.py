"""The shardings of a program, why they are so, and what they cost: the content of ``heron shard``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from heron.analysis.cost.communication import WAYS, communicates, group_size, payload_bytes
from heron.analysis.cost.program import program_cost
from heron.analysis.cost.step import step_cost
from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.propagate import Propagated
from heron.analysis.sharding.reasons import Reasons, Refused, Step, sharding_text
from heron.buffers.memory import Memory
from heron.cli.auto_shard import AutoReport
from heron.cli.named import parameter_named
from heron.cli.spread import Spread, steps_ahead
from heron.errors import HeronError
from heron.hlo.facts import is_given
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.origin import origin
from heron.hlo.ir.shape import Shape, ShapeIndex
from heron.hlo.sharding import Sharding
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.options import Options
from heron.passes.devices import partitioned, sharded
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.sharding.sharding_propagation import ShardingPropagation, find_shardings
from heron.records import dataclass
from heron.targets import Target
from heron.trace import Decision, Trace
from heron.trace.why import Answer

_PROPAGATION = ShardingPropagation.name


@dataclass(frozen=True, slots=True)
class Value:
    """A value: its sharding, the part that each device has, and how it came about."""

    instruction: Instruction
    index: ShapeIndex
    name: str
    shape: Shape
    sharding: TensorSharding
    text: str
    local: Shape
    steps: list[Step]
    refusals: list[Refused]

    @property
    def local_bytes(self) -> int:
        """Bytes of one device's part."""
        return self.local.byte_size

    def to_json(self) -> dict[str, Any]:
        """Stable fields."""
        return {
            "name": self.name,
            "opcode": self.instruction.opcode,
            "shape": str(self.shape.bare),
            "sharding": self.text,
            "local_shape": str(self.local.bare),
            "local_bytes": self.local_bytes,
            "from": origin(self.instruction),
            "steps": [{n: getattr(s, n) for n in Step.__slots__} for s in self.steps],
            "refused": [{n: getattr(r, n) for n in Refused.__slots__} for r in self.refusals],
        }


@dataclass(frozen=True, slots=True)
class Transfer:
    """A collective of the partitioned program. Bytes and seconds are those of one device and one run."""

    name: str
    opcode: str
    where: str
    devices: int
    bytes: int
    wire_bytes: float
    seconds: float
    runs: float
    known: bool

    def to_json(self) -> dict[str, Any]:
        """Stable fields: as the attributes."""
        return {n: getattr(self, n) for n in Transfer.__slots__}


@dataclass(slots=True)
class ShardingReport:
    """A module with a sharding for every value, the reasons, and the program that each device runs.

    Attributes:
        module: the global program.
        before: the same ahead of propagation.
        partitioned: one device's program; None if it cannot be made, and `refusal` says why.
    """

    module: Module
    mesh: AtomicMesh
    shardings: ProgramShardings
    done: Propagated
    reasons: Reasons
    before: Module
    partitioned: Module | None = None
    refusal: HeronError | None = None
    auto: AutoReport | None = None
    transfers: list[Transfer] = field(default_factory=list)
    seconds: float = 0.0
    peak: int = 0
    decisions: list[Decision] = field(default_factory=list)

    @staticmethod
    def of(
        module: Module,
        spread: Spread | None = None,
        target: Target | None = None,
        trace: Trace | None = None,
    ) -> ShardingReport:
        """Propagate through `module`, spread as the user says. Bytes count by the links of a `target`. Raises CLI060 to
        CLI063 and what the passes raise."""
        ctx = PassContext(target=target, trace=trace)
        auto = (spread or Spread()).over(module, ctx)
        before = module.clone()
        shardings, done, _ = find_shardings(module)
        shardings.write(module)
        if any([ctx.run_pass(step, module) for step in sharded().steps[len(steps_ahead()) + 1 :]]):
            shardings = ProgramShardings.read(module)
        made = Reasons(done)
        decisions = list(ctx.trace.decisions)
        return ShardingReport(module, shardings.mesh, shardings, done, made, before, auto=auto, decisions=decisions)

    def partition(self, target: Target, trace: Trace | None = None) -> None:
        """Make one device's program and estimate its collectives on a machine. Raises CLI065."""
        module = self.module.clone()
        try:
            _run(module, PassContext(target=target, trace=trace), partitioned())
        except HeronError as error:
            self.refusal = error
            return
        self.partitioned = module
        self._compile(module.clone(), target, trace or Trace())
        if self.auto is not None:
            self.auto.need_fit(self.peak, self.mesh.count)

    @property
    def wire_bytes(self) -> float:
        """Bytes on the wire of each device in one run."""
        return sum(t.runs * t.wire_bytes for t in self.transfers)

    def partitioned_bytes(self, target: Target) -> float:
        """Bytes on the wire of each device in one run, ahead of the passes of the target."""
        return _wire_bytes(self.partitioned, target) if self.partitioned is not None else 0.0

    def savings(self, name: str, target: Target) -> list[tuple[str, float]]:
        """The shardings of a value that differ in one axis from its own and for which the program sends fewer bytes,
        with these bytes, fewest first. The value is constrained to each of them in turn; `partition` comes first."""
        v = self.value(name)
        found: list[tuple[str, float]] = []
        now = self.partitioned_bytes(target)
        for s in _one_axis_changes(self.mesh, v.sharding):
            module = self.before.clone()
            i = next(i for i in module.instructions() if i.name == v.instruction.name)
            _constrain(module, i, self.mesh.write(s))
            ctx = PassContext(target=target)
            try:
                _run(module, ctx, *sharded().steps[len(steps_ahead()) :], partitioned())
            except HeronError:
                continue
            sent = _wire_bytes(module, target)
            if sent < now:
                found.append((sharding_text(self.done, s), sent))
        return sorted(found, key=lambda pair: pair[1])

    def _compile(self, module: Module, target: Target, trace: Trace) -> None:
        """Estimate a run, its collectives and the memory of one device, from its program after all passes."""
        from heron.backends.compiler import Compilation

        compilation = Compilation(module, target, Options(), trace)
        self.peak = Memory.of(compilation.buffers).peak
        self.seconds = step_cost(compilation.scheduled, target).seconds
        self.transfers = list(_transfers(compilation.scheduled, target))

    def why(self, name: str) -> Answer:
        """The chain of steps that led to a value's sharding, and what was refused. Raises CLI039."""
        v = self.value(name)
        steps = list(map(str, self.reasons.chain(v.instruction, v.index))) or ["no axis reached it"]
        head = f"%{v.name} {v.shape.bare} is {v.text}, {v.local.bare} on each device"
        if not self._is_changed(v.instruction, v.index, v.sharding):
            return Answer(head, lines=[*steps, *map(str, v.refusals)])
        before = sharding_text(self.done, self._propagated(v.instruction, v.index))
        later = [f"{d.rule}: {d.reason}" for d in self._later(v.instruction)]
        return Answer(head, lines=[*later, f"propagation gave {before}:", *steps])

    def _later(self, i: Instruction) -> list[Decision]:
        """The decisions of passes behind propagation about a value."""
        return [d for d in self.decisions if d.ok and d.subject == i.name and d.rule != _PROPAGATION]

    def _propagated(self, i: Instruction, index: ShapeIndex) -> TensorSharding:
        return self.done.final[self.done.flow.slot(i, index)]

    def _is_changed(self, i: Instruction, index: ShapeIndex, s: TensorSharding) -> bool:
        """Whether a pass behind propagation knew better."""
        return s.dims != self._propagated(i, index).dims

    def values(self) -> Iterator[Value]:
        """Every array of the program but scalars and constants, in order."""
        for c in self.module.non_fusion_computations():
            for i in c.post_order():
                if i in self.done.flow.leaves and (not is_given(i) or i.opcode == "parameter"):
                    yield from self._leaves(i)

    def value(self, name: str) -> Value:
        """The value of that name, ``while.1{2}`` for part of a tuple; see `parameter_named`. Raises CLI039."""
        import difflib

        base, _, rest = name.removeprefix("%").partition("{")
        index = tuple(int(n) for n in rest.rstrip("}").split(",") if n.strip().isdigit())
        named = {i.name: i for c in reversed(self.module.computations) for i in c.instructions}
        i, entry = named.get(base), self.module.entry
        # users mean the program's arguments, not those of a function in it
        is_inner = i is not None and i.opcode == "parameter" and i.parent is not entry and "." not in base
        if i not in self.done.flow.leaves or is_inner:
            i = parameter_named(entry.parameters, base) or i
        found = [] if i is None or i not in self.done.flow.leaves else list(self._leaves(i, scalars=True))
        for value in found:
            if value.index[: len(index)] == index:
                return value
        near = difflib.get_close_matches(base, named, 1)
        hint = f"did you mean '{near[0]}'?" if near and near[0] != base else "`heron shard FILE --all` lists them"
        raise HeronError("CLI039", f"no sharded value is called '{name}'", where=self.module.name, hint=hint)

    def _leaves(self, i: Instruction, scalars: bool = False) -> Iterator[Value]:
        for index, leaf in i.shape.leaves():
            if not leaf.is_array or not (leaf.rank or scalars):
                continue
            s = self.shardings.of(i, index)
            local = leaf.with_dims(self.mesh.local_dims(leaf.dims, s))
            name = i.name + ("{" + ",".join(map(str, index)) + "}" if index else "")
            steps, refusals = self.reasons.steps(i, index), self.reasons.refusals(i, index)
            if self._is_changed(i, index, s):
                by = next((d.rule for d in self._later(i)), "a later pass")
                steps = [Step(name, d, self.mesh.text(axes), tie=by) for d, axes in enumerate(s.dims) if axes]
                refusals = []
            yield Value(i, index, name, leaf, s, sharding_text(self.done, s), local, steps, refusals)

    def to_json(self) -> dict[str, Any]:
        """Stable fields: ``mesh`` (sizes by axis), ``devices``, ``values``, ``collectives``, ``seconds``
        and ``peak_bytes`` of one device, ``auto`` (what `--auto` chose)."""
        return {
            "mesh": dict(self.mesh.mesh.axes),
            "devices": self.mesh.count,
            "values": [v.to_json() for v in self.values()],
            "collectives": [t.to_json() for t in self.transfers],
            "wire_bytes": self.wire_bytes,
            "seconds": self.seconds,
            "peak_bytes": self.peak,
            "refusal": None if self.refusal is None else str(self.refusal),
            "auto": None if self.auto is None else self.auto.to_json(),
        }


def _transfers(module: Module, target: Target) -> Iterator[Transfer]:
    """The collectives of one device's program."""
    for step in program_cost(module, target).steps:
        op = communicates(step.instruction)
        if op is None:
            continue
        devices = group_size(op, module)
        payload = payload_bytes(op)
        wire = payload * WAYS[op.opcode.removesuffix("-start")].part(devices) if devices > 1 else 0.0
        seconds, runs = step.estimate.seconds, step.runs
        yield Transfer(op.name, op.opcode, origin(op), devices, payload, wire, seconds, runs, step.known)


def _wire_bytes(module: Module, target: Target) -> float:
    return sum(t.runs * t.wire_bytes for t in _transfers(module, target))


def _one_axis_changes(mesh: AtomicMesh, s: TensorSharding) -> Iterator[TensorSharding]:
    """Closed shardings in which one axis of the mesh splits another dimension than in `s`, or none."""
    for number in range(len(mesh.mesh.axes)):
        atoms = tuple(n for n, axis in enumerate(mesh.axes) if axis.number == number)
        if s.manual & set(atoms):
            continue
        without = [tuple(a for a in axes if a not in atoms) for axes in s.dims]
        for d in range(-1, s.rank):
            dims = [(*axes, *atoms) if n == d else axes for n, axes in enumerate(without)]
            changed = TensorSharding.closed(dims, manual=s.manual)
            if changed.dims != s.dims:
                yield changed


def _constrain(module: Module, i: Instruction, sharding: Sharding) -> None:
    """Put a constraint behind a value."""
    home = i.parent
    assert home is not None
    constraint = home.add("custom-call", [i], i.shape, custom_call_target="Sharding")
    constraint.sharding = sharding
    others = [u for u in i.users if u is not constraint]
    i.replace_uses_with(constraint, others)
    if home.root is i:
        home.root = constraint


def _run(module: Module, ctx: PassContext, *steps: Pass) -> None:
    for step in steps:
        ctx.run_pass(step, module)
