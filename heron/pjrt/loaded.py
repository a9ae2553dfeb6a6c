"""LoadedExecutable: a compiled program on its devices."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.analysis.cost.program import program_cost
from heron.errors import HeronError
from heron.hlo.calls.python import calls_python
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.pjrt import shardings
from heron.pjrt.buffer import Buffer, row_major
from heron.pjrt.compile_options import CompileOptions
from heron.pjrt.event import Event, all_of
from heron.pjrt.fingerprint import of_executable
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.pjrt.client import Client
    from heron.pjrt.device import Device, Memory
    from heron.runtime.executable import Executable

#: a run estimated to take less is done by the calling thread: another one takes 0.1 to 0.2 ms to begin and to tell the
#: caller of the end, more than a caller that need not wait gains
_SMALL_SECONDS = 1e-3
#: devices that take less together take turns on the calling thread: to wake theirs takes longer
_SMALL_TURNS = 300e-6


@dataclass(frozen=True, slots=True)
class ExecuteOptions:
    """Options of one run: arguments that are not donated even if the program donates them."""

    non_donatable: frozenset[int] = frozenset()


_USUAL = ExecuteOptions()
#: the kind of memory results asked for in the host's memory get
_HOST = "pinned_host"
#: what a token's buffer holds
_NOTHING = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Given:
    """Arguments of a run: an array, an error or a buffer that is not there yet, and if the program may write to it."""

    values: list[tuple[Any, bool]]
    donates: bool

    def arrays(self) -> list[Any]:
        """The arrays, a GPU's as they are there; one of the host's that the program must not write into is read-only.
        Raises what the computation of one raised."""
        return [_value(x, is_given or not self.donates) for x, is_given in self.values]


@dataclass(frozen=True, slots=True)
class About:
    """Facts needed to run a program, in addition to its signature.

    ``fingerprint``: a name of the program as it came (`heron.pjrt.fingerprint`). ``donated``: parameters whose
    buffers are the program's after a call. ``seconds``: how long a run is estimated to take. ``calls_python``:
    whether a run may call a function of the user's, which may take its time or wait for another run: the caller runs
    such a program, so that devices go on meanwhile. ``on_host``: results asked for in the host's memory.
    ``together``: whether the devices share the work. ``parameter_shardings``, ``output_shardings``: those of the flat
    global arrays, as XLA writes tiles; empty where each device runs the whole program.
    """

    name: str
    fingerprint: str
    donated: tuple[int, ...]
    seconds: float
    calls_python: bool
    on_host: tuple[int, ...] = ()
    together: bool = False
    parameter_shardings: tuple[str, ...] = ()
    output_shardings: tuple[str, ...] = ()


class LoadedExecutable:
    """A program ready to run on each of its devices; made by `Client.compile` and `Client.deserialize`.

    ``module`` gives the program after all passes, ``source`` the program as it came: both are asked for when needed
    only. ``data``: the bytes it was deserialised from.
    """

    def __init__(
        self,
        client: Client,
        program: Executable,
        options: CompileOptions,
        about: About,
        module: Callable[[], Module],
        source: Callable[[], Module],
        data: bytes | None = None,
    ) -> None:
        self.client, self.program, self.compile_options, self.about = client, program, options, about
        self._module, self._source, self._data = module, source, data
        self.name = about.name
        self.num_replicas, self.num_partitions = options.num_replicas, options.num_partitions
        numbers = options.devices()
        #: the places of this process's devices among those of the program
        self.places = [n for n, number in enumerate(numbers) if client.has(number)]
        self.devices: list[Device] = [client.device(numbers[n]) for n in self.places]
        #: the process of each of the program's devices, by its rank in MPI; empty where all are in this one
        self.processes: tuple[int, ...] = ()
        if about.together and len(self.places) < len(numbers):
            self.processes = client.job.ranks_of([client.topology.process_of(n) for n in numbers], about.name)
        if self.processes and client.devices[0].gpu is not None:
            raise HeronError(
                "PJRT030",
                f"'{about.name}' is work of GPUs of several processes",
                why="under JAX a program runs on the GPUs of one process",
                hint="outside JAX: `run_devices` under mpiexec (docs/use/devices.md)",
            )
        signature = program.signature
        #: flat, tokens included: one buffer each, of no bytes for a token
        self.parameters: tuple[Shape, ...] = tuple(s for p in signature.parameters for _, s in p.leaves())
        self.outputs: tuple[Shape, ...] = tuple(s for _, s in signature.result.leaves())
        self.donated = about.donated
        #: whether a run takes no longer than handing it to another thread
        self.is_small = not about.calls_python and about.seconds < _SMALL_SECONDS
        only_arrays = all(s.is_array for s in (*self.parameters, *self.outputs))
        #: whether nothing but arrays goes in and row-major ones out, none is donated, and the caller itself runs it
        on_host = client.devices[0].gpu is None
        devices = len(self.devices)
        is_one_run = devices == 1 or about.together and devices * about.seconds < _SMALL_TURNS
        is_one_run = is_one_run and not self.processes
        self.runs_at_once = on_host and self.is_small and only_arrays and not self.donated and is_one_run
        if any(minor_to_major(s) != row_major(s.rank) for s in self.outputs if s.is_array) or about.on_host:
            self.runs_at_once = False
        self.is_deleted = False

    # -- running -----------------------------------------------------------------------------------------------------
    def execute(self, arguments: Sequence[Buffer], options: ExecuteOptions = _USUAL) -> list[Buffer]:
        """Run on the only device, or the first. Outputs may not be ready yet; they carry what goes wrong.

        Raises PJRT007 for another number, type or shape of arguments, PJRT004 for one that was deleted.
        """
        if self.about.together:
            return self.execute_sharded([arguments], options)[0][0]
        return self._run(self.devices[0], arguments, options)[0]

    def execute_sharded(
        self, arguments: Sequence[Sequence[Buffer]], options: ExecuteOptions = _USUAL, device: Device | None = None
    ) -> tuple[list[list[Buffer]], list[Event]]:
        """Run on all devices, or only on `device`: its outputs and its event for each. Raises as `execute` does."""
        devices = self.devices if device is None or self.about.together else [device]
        if len(arguments) != len(devices):
            what = f"the program runs on {len(devices)} devices, arguments are for {len(arguments)}"
            raise HeronError("PJRT007", what)
        if self.about.together:
            runs = self._run_together(arguments, options)
        else:
            runs = [self._run(d, given, options) for d, given in zip(devices, arguments, strict=True)]
        return [outputs for outputs, _ in runs], [event for _, event in runs]

    def _run_together(
        self, rows: Sequence[Sequence[Buffer]], options: ExecuteOptions
    ) -> list[tuple[list[Buffer], Event]]:
        from heron.pjrt import together

        for row in rows:
            self._admit(row, options)
        return together.run(self, rows, options)

    def _admit(self, arguments: Sequence[Buffer], options: ExecuteOptions) -> None:
        """Raise what is wrong with a run on one device before it begins: PJRT007, PJRT008, PJRT024."""
        if self.is_deleted:
            raise HeronError("PJRT008", f"the program '{self.name}' has been deleted")
        self._check(arguments)
        if self.donated:
            _need_given_once(arguments, set(self.donated) - options.non_donatable)

    def new_outputs(self, device: Device) -> list[Buffer]:
        """Buffers for the results of a run on a device."""
        return [
            Buffer(m, s.element_type, s.dims, None, True, minor_to_major(s))
            for m, s in zip(self.output_memories(device), self.outputs, strict=True)
        ]

    def _run(self, device: Device, arguments: Sequence[Buffer], options: ExecuteOptions) -> tuple[list[Buffer], Event]:
        self._admit(arguments, options)
        if device.gpu is not None:
            from heron.pjrt import on_gpu

            return on_gpu.run(self, device, arguments, options)
        outputs = self.new_outputs(device)
        if self.about.calls_python and not device.worker.is_here:
            for b in arguments:  # the caller runs it, and hears of the function's error
                b.ready.wait()
        waiting = [b.ready for b in arguments if not b.ready.is_ready]
        done = Event()
        run = partial(self._compute, self.given(arguments, options), outputs, done)
        if device.worker.is_here or not waiting and (self.is_small or self.about.calls_python):
            run()
        elif not waiting:
            device.worker.submit(run)
        else:
            all_of(waiting).on_ready(lambda _: device.worker.submit(run))
        return outputs, done

    def given(self, arguments: Sequence[Buffer], options: ExecuteOptions) -> Given:
        """The values of the arguments, read now: they may be deleted before the program runs. Donated ones are deleted
        here."""
        donated = {n for n in self.donated if n not in options.non_donatable}
        values = [
            (b if not b.ready.is_ready else b.ready.error or b.held(), n in donated and b.is_alone)
            for n, (b, s) in enumerate(zip(arguments, self.parameters, strict=True))
            if s.is_array
        ]
        for n in donated:
            arguments[n].delete()
        return Given(values, bool(donated))

    def _compute(self, given: Given, outputs: Sequence[Buffer], done: Event) -> None:
        """Run the program, and fulfil its outputs or let them fail."""
        try:
            arrays = given.arrays()
            given.values.clear()
            results = self.program.run(arrays, donate=given.donates)
        except Exception as error:
            for b in outputs:
                b.fail(error)
            done.set(error)
            return
        self.fulfil(outputs, results)
        done.set()

    def fulfil(self, outputs: Sequence[Buffer], results: Sequence[Any]) -> None:
        """Give a device's buffers their arrays."""
        arrays = iter(results)
        for b, s in zip(outputs, self.outputs, strict=True):
            array = next(arrays) if s.is_array else _NOTHING
            b.fulfil(_laid(array, b.minor_to_major) if isinstance(array, np.ndarray) else array)

    def output_memories(self, device: Device) -> list[Memory]:
        """The memory of each result: the device's own, or the host's if the program asks for it."""
        own = device.default_memory
        of_host = next((m for m in device.memories if m.kind == _HOST), own) if device.gpu is None else own
        return [of_host if n in self.about.on_host else own for n in range(len(self.outputs))]

    def _check(self, arguments: Sequence[Buffer]) -> None:
        if len(arguments) != len(self.parameters):
            what = f"the program '{self.name}' takes {len(self.parameters)} buffers, {len(arguments)} given"
            raise HeronError("PJRT007", what)
        for n, (b, s) in enumerate(zip(arguments, self.parameters, strict=True)):
            if s.is_array and (b.dims != s.dims or b.element_type is not s.element_type):
                what = f"argument {n} of '{self.name}' is {b}, the program takes {s.bare}"
                raise HeronError("PJRT007", what)
            if b.deleted:
                raise b.gone()

    def delete(self) -> None:
        """Let the program go; it cannot run any more."""
        self.is_deleted = True

    # -- questions ---------------------------------------------------------------------------------------------------
    @cached_property
    def module(self) -> Module:
        """The program after all passes."""
        return self._module()

    @cached_property
    def source(self) -> Module:
        """The program as it came."""
        return self._source()

    @cached_property
    def cost(self) -> Any:
        """The estimated cost of a run, a `heron.analysis.cost.program.ProgramCost`."""
        return program_cost(self.module, self.client.target)

    def cost_analysis(self) -> dict[str, float]:
        """The estimate under the names XLA has for it."""
        return {
            "flops": float(self.cost.flops),
            "bytes accessed": float(self.cost.bytes),
            "optimal_seconds": float(self.cost.seconds),
        }

    @cached_property
    def identity(self) -> str:
        """The same text for the same program in every process, from wherever it was called. Functions of Python have
        another number in each."""
        from heron.hlo.text.options import PrintOptions
        from heron.hlo.text.printer import print_module

        module = self.source.clone()
        for i in module.instructions():
            if calls_python(i) or shardings.is_of_partitioners(i):
                i.extras.pop("backend_config", None)
        text = print_module(module, PrintOptions(digest_constants=True, metadata=False))
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def fingerprint(self) -> str:
        """The same text for the same program with the same options, in every process."""
        return of_executable(self.about.fingerprint, self.client.target.name, self.compile_options)

    def optimized_program(self) -> bytes:
        """The program after all passes, as the bytes of an HloModuleProtoWithConfig."""
        from heron.hlo.proto import to_proto_with_config

        module = shardings.shown(self.module) if self.about.together else self.module
        return to_proto_with_config(module, self.num_replicas, self.num_partitions)

    def serialize(self) -> bytes:
        """Bytes `Client.deserialize` reads: the machine code, and the program as it came for where that does not fit.

        Machine code is left out where it has no form in a file: in programs that call Python, or addresses of other
        libraries.
        """
        from heron.pjrt import serialized

        return self._data or serialized.pack(self)


def _need_given_once(arguments: Sequence[Buffer], donated: set[int]) -> None:
    """Raise PJRT024 for a buffer that is donated and an argument a second time."""
    places: dict[int, int] = {}
    for n, b in enumerate(arguments):
        first = places.setdefault(id(b), n)
        if first == n or not (n in donated or first in donated):
            continue
        twice = n in donated and first in donated
        what = "donate the same buffer twice" if twice else "use a buffer that was previously donated"
        why = f"arguments {first} and {n} are one buffer, {b}"
        raise HeronError("PJRT024", f"Attempt to {what} in Execute()", why=why, hint="pass a copy")


def minor_to_major(shape: Shape) -> tuple[int, ...]:
    """The order in which dimensions of a parameter or result lie in memory; a token has none."""
    if not shape.is_array or shape.layout is None:
        return row_major(shape.rank if shape.is_array else 1)
    return shape.layout.minor_to_major


def _laid(array: np.ndarray, order: tuple[int, ...]) -> np.ndarray:
    """The array, its dimensions lying in that order with no gaps."""
    turned = array.transpose(order[::-1])
    return array if turned.flags.c_contiguous else np.ascontiguousarray(turned).transpose(np.argsort(order[::-1]))


def _value(given: Any, may_write: bool) -> np.ndarray:
    """The array of an argument as it was noted: itself, a buffer that is ready by now, or an error.

    One the program must not write into is read-only: it is copied if it was to be donated.
    """
    if isinstance(given, BaseException):
        raise given
    array = given.held() if isinstance(given, Buffer) else given
    if not may_write and isinstance(array, np.ndarray):
        array = array.view()
        array.flags.writeable = False
    return array


def about(name: str, source: Module, scheduled: Module, seconds: float, together: bool = False) -> About:
    """Facts about a program of that fingerprint, from its source and from the optimised module."""
    donors = {number for number, _ in source.header.get("buffer_donor", ())}
    donated = tuple(sorted(_aliased(source) | donors))
    calls = any(map(calls_python, scheduled.instructions()))
    gives = source.entry_layout[1] if source.entry_layout is not None else source.entry.root.shape
    on_host = tuple(n for n, (_, s) in enumerate(gives.leaves()) if s.is_array and s.is_on_host)
    found = About(source.name, name, donated, seconds, calls, on_host)
    if not together:
        return found
    parameters = shardings.of_parameters(scheduled, [p.shape for p in source.entry.parameters])
    outputs = shardings.of_outputs(scheduled, source.entry.root.shape)
    # of arguments whose shares fit no result's, the caller stays the owner
    found = replace(found, together=True, donated=tuple(sorted(_aliased(scheduled))))
    return replace(found, parameter_shardings=parameters, output_shardings=outputs)


def _aliased(module: Module) -> set[int]:
    """Numbers of the parameters whose memory results take."""
    return {entry[1] for entry in module.header.get("input_output_alias", ())}
