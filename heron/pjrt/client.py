"""Client: devices, and what is made on them."""

from __future__ import annotations

import math
import re
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from heron import targets
from heron.analysis.cost.program import is_open_ended, program_cost
from heron.backends.stages import Stages
from heron.collector import collector_paused
from heron.compiling import compile_module
from heron.errors import HeronError
from heron.hlo.calls.lapack import options as options_of
from heron.hlo.calls.python import calls_python
from heron.hlo.ir import types
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType
from heron.options import Options
from heron.pjrt import fingerprint, shardings
from heron.pjrt.buffer import Buffer, row_major
from heron.pjrt.compile_options import CompileOptions
from heron.pjrt.device import PLATFORM, Device, Memory, Topology, platform_version
from heron.pjrt.element_types import has_spare_bits, without_spare_bits
from heron.pjrt.job import Job
from heron.pjrt.loaded import LoadedExecutable, about
from heron.pjrt.together import Launches
from heron.runtime.memory import is_readable
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device as Gpu

_ALONE = Job()


class Client:
    """Devices of one kind: this machine's CPU, a GPU of it, or a simulated one.

    Args:
        target: ``cpu``, ``cuda`` or ``cuda:1``, or ``sim:sm_90`` and the like (`heron targets` lists them).
        devices: how many; they share the machine, each has a thread of its own, and on GPUs a GPU.
        job: the processes of `jax.distributed`, this one among them; none where there is no other.
        process_index: which of them this one is.
        platform_name: the name it goes by; its version says heron in any case.

    ``devices`` are those of this process. Raises TGT0xx for a target that does not exist, PJRT010 for one programs
    cannot run on here.

    >>> Client("cpu", devices=2)
    Client('cpu', devices=2)
    """

    def __init__(
        self,
        target: str = "cpu",
        devices: int = 1,
        *,
        job: Job = _ALONE,
        process_index: int = 0,
        platform_name: str = PLATFORM,
    ) -> None:
        self.platform_name = platform_name
        self.target = targets.get(target)
        if devices < 1:
            raise HeronError("PJRT011", f"a client has one device or more, not {devices}")
        is_real = self.target.is_gpu and not self.target.sim
        gpus = _gpus(target, devices) if is_real else [None] * devices
        self.job, self.process_index = job, process_index
        #: the number of this process's first device
        self.first = sum(job.devices[:process_index])
        self.devices = [Device(self, self.first + n, self.target.name, gpu) for n, gpu in enumerate(gpus)]
        #: runs programs whose devices work together, one after the other
        self.launches = Launches()
        self.memories: list[Memory] = [m for d in self.devices for m in d.memories]

    @property
    def platform_version(self) -> str:
        return platform_version(self.target.name)

    @property
    def topology(self) -> Topology:
        count = sum(self.job.devices) or len(self.devices)
        return Topology(self.target.name, count, self.job.devices, self.platform_name)

    def has(self, number: int) -> bool:
        """Whether the device of that number is one of this process. Raises PJRT012 for one that is not there."""
        topology = self.topology
        if not 0 <= number < topology.count:
            why = f"there are {topology.count}; HERON_DEVICES sets how many"
            raise HeronError("PJRT012", f"there is no device {number}", why=why)
        return 0 <= number - self.first < len(self.devices)

    def device(self, number: int) -> Device:
        """The device of that number. Raises PJRT012 for one that is not there, PJRT025 for one of another process."""
        if self.has(number):
            return self.devices[number - self.first]
        raise HeronError(
            "PJRT025",
            f"device {number} belongs to process {self.topology.process_of(number)}, this is {self.process_index}",
            hint="jax.local_devices() are those of this process",
        )

    # -- programs ----------------------------------------------------------------------------------------------------
    @collector_paused()
    def compile(self, program: str | bytes | Module, options: CompileOptions | None = None) -> LoadedExecutable:
        """Compile for one device, for several that each run the whole program, or for several that share the work,
        which may be in several processes: each of them compiles the program.

        Args:
            program: a module, or text or bytes in any form `heron.load` takes.
            options: how many devices, and options of `heron.compile`.

        Raises what reading and compiling raise; PJRT013 for a program of several devices when the options are for one,
        PJRT030 for one of several processes that MPI does not join.
        """
        options = self._placed(options or CompileOptions())
        own = [n for n in options.devices() if self.has(n)]
        source = program.clone() if isinstance(program, Module) else _read(program)
        if source.entry_layout is None:  # callers see rows, whatever would suit the program
            parameters, result = (p.shape for p in source.entry.parameters), source.entry.root.shape
            source.entry_layout = tuple(p.with_default_layout() for p in parameters), result.with_default_layout()
        name = fingerprint.of_program(program, source)
        if options.callbacks:
            _number(source, options.callbacks)
        together = shardings.works_together(source, options)
        if together and len(own) < len(options.devices()):
            self.job.ranks_of([self.topology.process_of(n) for n in options.devices()], source.name)
        program = shardings.for_devices(source, options) if together else shardings.for_one_device(source)
        executable = compile_module(program, self.target, self.settled(options), Trace())
        stages = executable.stages
        assert isinstance(stages, Stages)
        scheduled = stages.compilation.scheduled
        cost = program_cost(scheduled, self.target, stages.compilation.alike)
        seconds = cost.seconds if not together else math.inf if is_open_ended(scheduled) else cost.computing
        facts = about(name, source, scheduled, seconds, together)
        return LoadedExecutable(self, executable, options, facts, lambda: scheduled, lambda: source)

    def settled(self, options: CompileOptions) -> Options:
        """heron's options; on CPUs denormals are taken for zero if nobody says otherwise, as JAX's own CPU does it."""
        found = options.options()
        if found.denormals != "auto" or self.target.kind != "cpu":
            return found
        return replace(found, denormals="flush")

    def _placed(self, options: CompileOptions) -> CompileOptions:
        """The options with a device of this process where they name none."""
        if options.device_assignment or options.device_ordinal >= 0 or self.first == 0:
            return options
        numbers = [self.first + n for n in range(options.num_replicas * options.num_partitions)]
        columns = options.num_partitions
        rows = tuple(tuple(numbers[r * columns : (r + 1) * columns]) for r in range(options.num_replicas))
        return replace(options, device_assignment=rows)

    def deserialize(self, data: bytes, options: CompileOptions | None = None) -> LoadedExecutable:
        """The executable `LoadedExecutable.serialize` made the bytes of, maybe with other options.

        Its machine code is used as it is when it is for this machine, from this version of heron and of the same
        options; else the program is compiled again. Raises PJRT009 for other bytes.
        """
        from heron.pjrt import serialized

        return serialized.load(self, data, options)

    # -- buffers -----------------------------------------------------------------------------------------------------
    def buffer_from_host(self, array: Any, to: Device | Memory | None = None, *, share: bool = False) -> Buffer:
        """A buffer of a NumPy array's elements.

        Args:
            array: anything NumPy makes an array of.
            to: a device or one of its memories; the first device by default.
            share: use the array's own memory, if it lies as a buffer does; the array must not change any more.
        """
        given, memory = np.asarray(array), self.memory(to)
        element_type = types.of_dtype(given.dtype)
        if memory.gpu is not None:
            return Buffer(memory, element_type, given.shape, given, owned=True)
        as_is = share and is_readable(given) and not has_spare_bits(element_type)
        own = given if as_is else without_spare_bits(np.array(given, order="C", copy=True), element_type)
        return Buffer(memory, element_type, given.shape, own, owned=not as_is)

    def view(
        self,
        address: int,
        element_type: ElementType,
        dims: Sequence[int],
        to: Device | Memory | None = None,
        on_delete: Callable[[], None] | None = None,
        minor_to_major: tuple[int, ...] | None = None,
    ) -> Buffer:
        """A buffer of memory somebody else has; `on_delete` is called when nothing here uses it any more.

        Its elements lie there row-major, or with the dimensions in the order of ``minor_to_major``. Raises PJRT017 for
        memory of a GPU.
        """
        memory = self.memory(to)
        if memory.gpu is not None:
            hint = "copy it through the host: jax.device_put(numpy.asarray(array))"
            raise HeronError("PJRT017", "arrays another library has on a GPU cannot be shared yet", hint=hint)
        from heron.runtime.cpu.executable import View

        order = row_major(len(dims)) if minor_to_major is None else minor_to_major
        lying = View.of(element_type.dtype, tuple(dims[d] for d in order[::-1])).at(address)
        if on_delete is not None:
            weakref.finalize(lying, on_delete)
        array = lying.transpose(np.argsort(order[::-1])) if order != row_major(len(dims)) else lying
        return Buffer(memory, element_type, tuple(dims), array, owned=False, minor_to_major=order)

    def uninitialized(
        self, element_type: ElementType, dims: Sequence[int], to: Device | Memory | None = None
    ) -> Buffer:
        """A buffer whose elements are not set."""
        array = np.empty(tuple(dims), element_type.dtype)
        return Buffer(self.memory(to), element_type, tuple(dims), array, owned=True)

    def pending(self, element_type: ElementType, dims: Sequence[int], to: Device | Memory | None = None) -> Buffer:
        """A buffer somebody will `fulfil` or `fail`."""
        return Buffer(self.memory(to), element_type, tuple(dims), None, owned=True)

    def memory(self, to: Device | Memory | None) -> Memory:
        """The memory that is meant by a device, a memory or nothing."""
        if to is None:
            return self.devices[0].default_memory
        return to.default_memory if isinstance(to, Device) else to

    def close(self) -> None:
        """Wait for what is under way and end the devices' threads."""
        for worker in (self.launches, *(d.worker for d in self.devices)):
            worker.stop()

    def __repr__(self) -> str:
        return f"Client({self.target.name!r}, devices={len(self.devices)})"


def _gpus(target: str, count: int) -> list[Gpu]:
    """As many GPUs of this machine, from the one that a target names. Raises PJRT010 when it is none, TGT008 where
    there are fewer, and others of the driver."""
    from heron.runtime.cuda.device import device
    from heron.targets import cuda

    machine, _, ordinal = target.partition(":")
    is_machine = machine == "cuda"
    if is_machine and cuda.capability() is not None:
        return [device(int(ordinal or 0) + n) for n in range(count)]
    raise HeronError(
        "PJRT010",
        f"no program can run on '{target}' here",
        why="this machine has no NVIDIA driver, or no GPU" if is_machine else "a GPU of this machine is called 'cuda'",
        hint=f"HERON_TARGET=cpu, or HERON_TARGET=sim:{'sm_90' if is_machine else target} to simulate one",
    )


def _read(program: str | bytes) -> Module:
    from heron.frontends.loading import from_bytes, load
    from heron.frontends.stablehlo.bytecode import MAGIC, to_parts
    from heron.frontends.stablehlo.importer import parse

    if isinstance(program, str):
        return load(program)
    if program.startswith(MAGIC):
        text, elsewhere = to_parts(program, "<program>")
        return parse(text, "<program>", elsewhere=elsewhere)
    return from_bytes(program, "<program>")


def _number(source: Module, numbers: Sequence[int]) -> None:
    """Have calls of Python functions, which count them from 0, carry the functions' numbers."""
    for i in source.instructions():
        index = options_of(i).get("index") if calls_python(i) else None
        if isinstance(index, int) and index < len(numbers):
            config = str(i.extras["backend_config"])
            i.extras["backend_config"] = re.sub(r"\bindex = \d+", f"index = {numbers[index]}", config)
