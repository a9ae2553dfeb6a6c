"""The evaluator: what an HLO program means, run with NumPy, one op at a time.

It is the definition every pass and backend is checked against: slow where it must be, never clever about results.
Each op brings its own meaning (`Op.evaluate` in heron/hlo/ops); this file walks computations and checks inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.evaluator import dynamic, groups, transfers
from heron.evaluator.calls import call_library, knows
from heron.evaluator.devices import World
from heron.evaluator.host import Host
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.evaluation import Device, Members, Value
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.meaning import batched
from heron.hlo.meaning.draws import FIRST_STATE
from heron.hlo.verifier import blaming

Watcher = Callable[[Instruction, Value], None]
#: an instruction, its meaning (None: a parameter), and the values nobody needs after it
Step = tuple[Instruction, Callable[..., Value] | None, list[Instruction]]
_VALUES = (np.ndarray, tuple, type(None))


class Evaluator:
    """Runs computations. Caches orders of computations, so make a new one after changing the module.

    Args:
        module: the program; None to run single computations or instructions.
        on_value: called with each instruction and its value as it is computed, in called computations too.
        seed: how far the random state of the module, which `rng` draws from, is from where it starts in programs.
        host: what infeeds get, and where outfeeds go.
        world: the devices that take part, `device` the one this evaluator is; alone when left out.
    """

    def __init__(
        self,
        module: Module | None = None,
        on_value: Watcher | None = None,
        seed: int = 0,
        host: Host | None = None,
        world: World | None = None,
        device: Device | None = None,
    ) -> None:
        if module is not None:
            module.need_bounds()
        self.module = module
        self.host = host or Host()
        self.world = world or World()
        self.device = device or self.world.devices[0]
        self.on_value = on_value
        self.rng_state = FIRST_STATE + seed
        #: every recv begun, with what it waits for
        self.transfers: list[tuple[Instruction, Any]] = []
        self._orders: dict[Computation, list[Instruction]] = {}
        self._steps: dict[Computation, list[Step]] = {}
        self._is_quiet = False  # whether NumPy's warnings are off already
        self._batchable: dict[Computation, bool] = {}

    # -- running -----------------------------------------------------------------------------------------------------
    def run(self, *arrays: np.ndarray) -> Value:
        """The entry computation's value. ``arrays`` are its parameters, tuples flattened.

        Raises EVAL002 (wrong number of inputs), EVAL003 (wrong dtype or shape).
        """
        if self.module is None:
            raise HeronError("EVAL002", "this evaluator was made without a module to run")
        entry = self.module.entry
        return self.call(entry, *bind([p.shape for p in entry.parameters], arrays))

    def call(self, computation: Computation, *values: Value) -> Value:
        """The value of `computation` on those parameters."""
        if self._is_quiet:
            return self._call(computation, values)
        with np.errstate(all="ignore"):
            self._is_quiet = True
            try:
                return self._call(computation, values)
            except RecursionError:
                what = f"computations called by '{computation.name}' call others too deeply to be evaluated"
                raise HeronError("EVAL010", what, hint="inline calls: `heron opt -p call-inliner`") from None
            finally:
                self._is_quiet = False

    def _call(self, computation: Computation, values: Sequence[Value]) -> Value:
        steps = self._steps.get(computation)
        if steps is None:
            steps = self._steps[computation] = _plan(self.order(computation), computation.root)
        known: dict[Instruction, Value] = {}
        on_value = self.on_value
        i = computation.root
        try:
            for i, evaluate, last_used in steps:
                if evaluate is None:
                    value = values[i.attrs["number"]]
                else:
                    value = evaluate(self, i, *[known[o] for o in i.operands])
                    if not isinstance(value, _VALUES):
                        value = np.asarray(value)
                known[i] = value
                if on_value is not None:
                    on_value(i, value)
                for dead in last_used:
                    del known[dead]
        except HeronError as e:
            raise e.located(str(i)) from None
        except MemoryError as e:
            raise _no_memory(i, e) from e
        return known[computation.root]

    def run_instruction(self, i: Instruction, values: Sequence[Value]) -> Value:
        """The value of one instruction on those operand values."""
        try:
            with np.errstate(all="ignore"):
                value = i.op.evaluate(self, i, *values)
        except HeronError as e:
            raise e.located(str(i)) from None
        except MemoryError as e:
            raise _no_memory(i, e) from e
        return value if isinstance(value, _VALUES) else np.asarray(value)

    def call_library(self, i: Instruction, operands: Sequence[Any]) -> Any:
        """The value of a custom call. Raises EVAL001, EVAL010."""
        return call_library(self, i, operands)

    # -- devices -----------------------------------------------------------------------------------------------------
    def group(self, i: Instruction) -> Members | None:
        """The devices of this one's group; None when it is in no group."""
        return groups.members(self, i)

    def own_group(self, i: Instruction) -> Members:
        """Like `group`; raises EVAL004 when this device is in no group."""
        return groups.needed(self, i)

    def exchange(self, i: Instruction, members: Members, value: Any, work: Callable[[list[Any]], Any]) -> Any:
        """``work(values)`` of the values all members bring, done once for all of them."""
        return groups.exchange(self, i, members, value, work)

    def permuted_pairs(self, i: Instruction) -> list[tuple[int, int]]:
        """The (source, target) devices of a collective-permute."""
        return groups.permuted_pairs(self, i)

    # -- host and channels -------------------------------------------------------------------------------------------
    def from_host(self, shape: Shape, arrays: Sequence[np.ndarray]) -> Value:
        """The host's arrays as a value of `shape`. Raises EVAL002, EVAL003 when they do not fit."""
        return bind([shape], arrays, "the host")[0]

    def infeed(self, shape: Shape) -> Value:
        """The host's next value, of `shape`."""
        return self.from_host(shape, self.host.next_infeed())

    def outfeed(self, value: Value) -> None:
        """Hand a value to the host."""
        self.host.outfeed.append(value)

    def send(self, i: Instruction, value: Value) -> None:
        """Hand `value` over to its receiver. Never waits."""
        transfers.send(self, i, value)

    def begin_receive(self, i: Instruction) -> np.ndarray:
        """Begin to receive; gives the ticket for `finish_receive`."""
        return transfers.begin(self, i)

    def finish_receive(self, i: Instruction, ticket: np.ndarray, zeros: Value) -> Value:
        """Wait for the value sent; `zeros` for a device nobody sends to."""
        return transfers.finish(self, i, ticket, zeros)

    # -- facts about computations, kept ------------------------------------------------------------------------------
    def order(self, computation: Computation) -> list[Instruction]:
        """Instructions, operands first."""
        found = self._orders.get(computation)
        if found is None:
            found = self._orders[computation] = computation.post_order()
        return found

    def is_batchable(self, computation: Computation) -> bool:
        """Whether a scalar computation may run on whole arrays."""
        found = self._batchable.get(computation)
        if found is None:
            found = self._batchable[computation] = batched.is_batchable(computation)
        return found


def evaluate(module: Module, *arrays: np.ndarray, on_value: Watcher | None = None) -> list[np.ndarray]:
    """The outputs of `module` (tuples flattened, tokens left out) on inputs with its parameters' dtypes and shapes.

    A dynamic dimension (``<=N``) of an input may have any size up to its bound, and outputs have their actual sizes.
    The program runs on one device; `evaluate_devices` runs it on several. ``on_value``: as for `Evaluator`.

    Raises EVAL001 (an op cannot be evaluated), EVAL002 (wrong number of inputs), EVAL003 (wrong dtype or shape),
    EVAL004 (an op needs devices that are not there), EVAL007 (the host gives nothing), EVAL008 (elements beyond an
    array's actual size), EVAL009 (a size beyond its bound), or the verifier's rule that an unverified program breaks.
    """
    with blaming(module):
        return flatten(Evaluator(module, on_value).run(*arrays))


def evaluate_devices(
    module: Module,
    inputs: Sequence[Sequence[np.ndarray]],
    replicas: int | None = None,
    partitions: int | None = None,
    hosts: Sequence[Host] | None = None,
    on_value: Callable[[Device, Instruction, Value], None] | None = None,
) -> list[list[np.ndarray]]:
    """Each device's outputs of `module` run on ``replicas × partitions`` devices (default: the module's own counts).

    Device ``r * partitions + p`` is partition p of replica r. `inputs`: one list of arrays for each device, or a single
    one for all; `hosts`: one for each device.

    Raises EVAL001 to EVAL004 as `evaluate` does, EVAL005 (a number of devices, inputs or hosts that cannot be),
    EVAL006 (devices wait for each other for ever), EVAL007 (a host has nothing to give).
    """
    world = World(
        module.replica_count if replicas is None else replicas,
        module.num_partitions if partitions is None else partitions,
    )
    count = len(world.devices)
    given = list(inputs) * count if len(inputs) == 1 else list(inputs)
    talking = list(hosts) if hosts is not None else [Host() for _ in world.devices]
    for what, number in (("inputs", len(given)), ("hosts", len(talking))):
        if number != count:
            raise HeronError("EVAL005", f"{what} for {number} devices given", why=f"the program runs on {count}")

    def run(device: Device) -> list[np.ndarray]:
        watch = None if on_value is None else partial(on_value, device)
        ev = Evaluator(module, watch, host=talking[device.number], world=world, device=device)
        return flatten(ev.run(*given[device.number]))

    return world.run(run)


def flatten(value: Value) -> list[np.ndarray]:
    """The arrays in a value, in order."""
    if value is None:
        return []
    if isinstance(value, tuple):
        return [a for part in value for a in flatten(part)]
    return [np.asarray(value)]


def bind(shapes: Sequence[Shape], arrays: Sequence[np.ndarray], source: str = "") -> list[Value]:
    """Flat `arrays` (of `source`, when they are not the program's inputs) as values of `shapes`, checked.

    Raises EVAL002 (wrong number), EVAL003 (wrong dtype or shape), with the numbers.
    """
    leaves = [(n, index, s) for n, shape in enumerate(shapes) for index, s in shape.leaves() if s.is_array]
    if len(leaves) != len(arrays):
        told = f"{source} gives {len(arrays)}" if source else f"{len(arrays)} given"
        raise HeronError("EVAL002", f"the program takes {len(leaves)} inputs, {told}")
    checked: list[np.ndarray] = []
    for (n, index, s), given in zip(leaves, arrays, strict=True):
        a = np.asarray(given)
        if not s.fits(a.shape) or a.dtype != s.element_type.dtype:
            part = "".join(f"[{k}]" for k in index)
            raise HeronError(
                "EVAL003",
                f"input {n}{part}{source and ' from ' + source} is {a.dtype}{list(a.shape)}",
                why=f"the program takes {s.element_type.dtype}{list(s.dims)} ({s})"
                + ("" if s.fits(a.shape) else f"; {s.misfit(a.shape)}"),
            )
        checked.append(a)
    supply = iter(checked)
    return [_assemble(shape, supply) for shape in shapes]


def _assemble(shape: Shape, supply: Any) -> Value:
    if shape.tuple_shapes is not None:
        return tuple(_assemble(s, supply) for s in shape.tuple_shapes)
    return next(supply) if shape.is_array else None


def _no_memory(i: Instruction, error: MemoryError) -> HeronError:
    size = i.shape.total_bytes
    what, hint = f"no memory for the value of '{i.name}': {size:,} bytes", "evaluate it at smaller sizes, or compile it"
    return HeronError("RUN010", what, where=str(i), why=str(error) or None, hint=hint)


def _plan(order: list[Instruction], root: Instruction) -> list[Step]:
    """The steps of the evaluation, operands first."""
    order = [i for i in order if not _is_nobodys(i, root)]
    last: dict[Instruction, Instruction] = {}
    for i in order:
        last[i] = i
        for operand in i.operands:
            last[operand] = i
    dead: dict[Instruction, list[Instruction]] = {i: [] for i in order}
    for value, user in last.items():
        if value is not root:
            dead[user].append(value)
    return [(i, _meaning(i), dead[i]) for i in order]


def _is_nobodys(i: Instruction, root: Instruction) -> bool:
    """Whether it is somebody else's call that need not be made: it only gives a value, which nothing uses."""
    if i.users or i is root or i.opcode != "custom-call" or i.has_side_effect:
        return False
    return not knows(i.custom_call_target)


def _meaning(i: Instruction) -> Callable[..., Value] | None:
    if i.opcode == "parameter":
        return None
    return dynamic.run if dynamic.is_dynamic(i) else i.op.evaluate
