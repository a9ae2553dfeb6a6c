"""LoadedExecutable: a compiled program on its devices."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.module import Module
from heron.hlo.shape import Shape
from heron.pjrt.buffer import Buffer
from heron.pjrt.compile_options import CompileOptions
from heron.pjrt.event import Event, all_of

if TYPE_CHECKING:
    from heron.pjrt.client import Client
    from heron.pjrt.device import Device
    from heron.runtime.executable import Executable

#: what serialised executables begin with; the number grows when their form changes
_MAGIC = b"heron executable 1\n"
#: a run estimated to take less is done by the calling thread: handing it to another one takes as long
_SMALL_SECONDS = 100e-6


@dataclass(frozen=True, slots=True)
class ExecuteOptions:
    """How one run differs: arguments that are not to be donated even where the program says so."""

    non_donatable: frozenset[int] = frozenset()


_USUAL = ExecuteOptions()
#: what a token's buffer holds
_NOTHING = np.empty(0, np.uint8)


class LoadedExecutable:
    """A program ready to run on each of its devices; made by `Client.compile` and `Client.deserialize`."""

    def __init__(
        self, client: Client, module: Module, program: Executable, options: CompileOptions, source: Module
    ) -> None:
        self.client, self.module, self.program, self.compile_options = client, module, program, options
        self.source = source
        self.name = source.name
        self.num_replicas, self.num_partitions = options.num_replicas, options.num_partitions
        self.devices: list[Device] = [client.device(n) for n in options.devices()]
        signature = program.signature
        #: flat, tokens included: one buffer each, of no bytes for a token
        self.parameters: tuple[Shape, ...] = tuple(s for p in signature.parameters for _, s in p.leaves())
        self.outputs: tuple[Shape, ...] = tuple(s for _, s in signature.result.leaves())
        self._donated = _donated(source)
        self._is_small = not _calls_python(module) and self.cost.seconds < _SMALL_SECONDS
        only_arrays = all(s.is_array for s in (*self.parameters, *self.outputs))
        #: whether nothing but arrays goes in and out, none is donated, and the caller itself runs it
        self.runs_at_once = self._is_small and only_arrays and not self._donated and len(self.devices) == 1
        self.is_deleted = False

    # -- running -----------------------------------------------------------------------------------------------------
    def execute(self, arguments: Sequence[Buffer], options: ExecuteOptions = _USUAL) -> list[Buffer]:
        """Run on the only device, or the first. Outputs may not be ready yet; they carry what goes wrong.

        Raises PJRT007 for another number, type or shape of arguments, PJRT004 for one that was deleted.
        """
        return self._run(self.devices[0], arguments, options)[0]

    def execute_sharded(
        self, arguments: Sequence[Sequence[Buffer]], options: ExecuteOptions = _USUAL, device: Device | None = None
    ) -> tuple[list[list[Buffer]], list[Event]]:
        """Run on all devices, or only on `device`: its outputs and its event for each. Raises as `execute` does."""
        devices = self.devices if device is None else [device]
        if len(arguments) != len(devices):
            what = f"the program runs on {len(devices)} devices, arguments are for {len(arguments)}"
            raise HeronError("PJRT007", what)
        runs = [self._run(d, given, options) for d, given in zip(devices, arguments, strict=True)]
        return [outputs for outputs, _ in runs], [event for _, event in runs]

    def _run(self, device: Device, arguments: Sequence[Buffer], options: ExecuteOptions) -> tuple[list[Buffer], Event]:
        if self.is_deleted:
            raise HeronError("PJRT008", f"the program '{self.name}' has been deleted")
        self._check(arguments)
        memory = device.default_memory
        outputs = [Buffer(memory, s.element_type, s.dims, None, owned=True) for s in self.outputs]
        arrays_out = [b for b, s in zip(outputs, self.outputs, strict=True) if s.is_array]
        tokens_out = [b for b, s in zip(outputs, self.outputs, strict=True) if not s.is_array]
        is_ready = all(b.ready.is_ready for b in arguments)
        donated = {n for n in self._donated if n not in options.non_donatable}
        # read now what may be deleted before the program runs
        given: list[Any] = [
            (b if not b.ready.is_ready else b.ready.error or b.array(), n in donated and b.is_alone)
            for n, (b, s) in enumerate(zip(arguments, self.parameters, strict=True))
            if s.is_array
        ]
        for n in donated:
            arguments[n].delete()
        done = Event()

        def run() -> None:
            try:
                arrays = [_value(x, is_given or not donated) for x, is_given in given]
                given.clear()
                results = self.program.run(arrays, donate=bool(donated))
            except Exception as error:
                for b in outputs:
                    b.fail(error)
                done.set(error)
                return
            for b in tokens_out:
                b.fulfil(_NOTHING)
            for b, result in zip(arrays_out, results, strict=True):
                b.fulfil(result if result.flags.c_contiguous else np.ascontiguousarray(result))
            done.set()

        if (is_ready and self._is_small) or device.worker.is_here:
            run()
        elif is_ready:
            device.worker.submit(run)
        else:
            waiting = [b.ready for b in arguments if not b.ready.is_ready]
            all_of(waiting).on_ready(lambda _: device.worker.submit(run))
        return outputs, done

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
    def cost(self) -> Any:
        """What a run is estimated to cost: a `heron.analysis.cost.program.ProgramCost`."""
        from heron.analysis.cost.program import program_cost

        return program_cost(self.module, self.client.target)

    def cost_analysis(self) -> dict[str, float]:
        """The estimate under the names XLA has for it."""
        return {
            "flops": float(self.cost.flops),
            "bytes accessed": float(self.cost.bytes),
            "optimal_seconds": float(self.cost.seconds),
        }

    @property
    def fingerprint(self) -> str:
        """The same text for the same program with the same options, in every process."""
        return hashlib.sha256(self.serialize()).hexdigest()

    def optimized_program(self) -> bytes:
        """The program after all passes, as the bytes of an HloModuleProtoWithConfig."""
        from heron.hlo.proto import to_proto_with_config

        return to_proto_with_config(self.module, self.num_replicas, self.num_partitions)

    def serialize(self) -> bytes:
        """Bytes `Client.deserialize` reads: the program as it came and the options; compiling again finds its machine
        code in the cache on disk, if that is on."""
        import heron

        options = asdict(self.compile_options)
        facts = {"version": heron.__version__, "target": self.client.target.name, "options": options}
        return _MAGIC + json.dumps(facts, sort_keys=True).encode() + b"\n" + str(self.source).encode()

    @staticmethod
    def parse(data: bytes) -> tuple[str, CompileOptions]:
        """The HLO text and the options in what `serialize` gave. Raises PJRT009 for other bytes."""
        head, _, text = data.removeprefix(_MAGIC).partition(b"\n")
        try:
            facts = json.loads(head) if data.startswith(_MAGIC) else {}
            options = facts["options"]
            options["device_assignment"] = tuple(tuple(r) for r in options["device_assignment"])
            return text.decode(), CompileOptions(**options)
        except (ValueError, KeyError, TypeError) as error:
            what = "these bytes are no executable heron has serialised"
            raise HeronError("PJRT009", what, why=f"{data[:40]!r} …; {error}") from None


def _value(given: Any, may_write: bool) -> np.ndarray:
    """The array of an argument as it was noted: itself, a buffer that is ready by now, or an error.

    One the program must not write into is read-only: it is copied if it was to be donated.
    """
    if isinstance(given, BaseException):
        raise given
    array = given.array() if isinstance(given, Buffer) else given
    if not may_write:
        array = array.view()
        array.flags.writeable = False
    return array


def _donated(module: Module) -> tuple[int, ...]:
    """Parameters whose buffers are the program's after the call."""
    aliased = {entry[1] for entry in module.header.get("input_output_alias", ())}
    return tuple(sorted(aliased | {number for number, _ in module.header.get("buffer_donor", ())}))


def _calls_python(module: Module) -> bool:
    """Whether a run may call a function of the user's, which may take its time or wait for another run."""
    return any("callback" in i.custom_call_target for i in module.instructions() if i.opcode == "custom-call")
