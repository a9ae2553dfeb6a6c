"""CompileOptions: how many devices a program is for, which, and heron's own options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

from heron.errors import HeronError
from heron.options import Options
from heron.pjrt import wire
from heron.records import dataclass

#: compile options meant for heron begin so; the rest of the name is a field of `heron.Options`
PREFIX = "heron_"
#: the option with the numbers of the Python functions a program calls, the first for ``index = 0`` of its calls
CALLBACKS = "heron_callbacks"

#: what is wrong with options of XLA, or None; heron itself knows none of them
XLA_CHECKS: list[Callable[[dict[str, Any]], str | None]] = []

# numbers of fields, from openxla/xla: xla/pjrt/proto/compile_options.proto and xla/xla_data.proto
_BUILD_OPTIONS, _OVERRIDES = 3, 7
_ASSIGNMENT, _COMPUTATION_DEVICES = 9, 3
#: fields of ExecutableBuildOptionsProto with one value each
_NUMBERS = {
    "device_ordinal": 1, "num_replicas": 4, "num_partitions": 5, "process_index": 22, "process_count": 23,
}  # fmt: skip
_FLAGS = {
    "use_spmd_partitioning": 6, "use_auto_spmd_partitioning": 7, "alias_passthrough_params": 10,
    "use_shardy_partitioner": 19,
}  # fmt: skip
#: repeated fields of it, packed or not
_FLAG_LISTS = {"propagates_to_outputs": 12, "propagates_to_parameters": 18}
_NUMBER_LISTS = {"auto_mesh_shape": 16, "auto_mesh_ids": 17}


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options that a client compiles a program with.

    Attributes:
        num_replicas: how many times the whole program runs.
        num_partitions: the number of devices over which one replica is spread.
        device_assignment: ``[replica][partition]`` is a device's number; empty: the first devices.
        device_ordinal: the device of a program for one; -1: the first.
        overrides: ``heron_threads=1`` and the like. Those of XLA (``xla_…``) mean nothing here and are passed over,
            unless `XLA_CHECKS` have something against them.
        use_spmd_partitioning: all devices run one program. XLA has no other way today.
        use_auto_spmd_partitioning: the compiler shall search for shardings on a mesh of ``auto_mesh_shape``.
        propagates_to_parameters: for each flat parameter, whether the partitioner chooses its sharding where the
            program gives none. One entry stands for all; none is False for all.
        propagates_to_outputs: the same for each flat result.
        use_shardy_partitioner: shardings are by axes of a mesh. heron reads both forms wherever they occur.
        alias_passthrough_params: a parameter that is a result may share its memory.
        process_index, process_count: the process that compiles, and how many there are.

    >>> CompileOptions(overrides={"heron_math": "fast"}).options().math
    'fast'
    >>> CompileOptions.parse(CompileOptions(num_partitions=2, propagates_to_outputs=(True,)).serialize()).num_partitions
    2
    """

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: tuple[tuple[int, ...], ...] = ()
    device_ordinal: int = -1
    overrides: dict[str, Any] = field(default_factory=dict)
    use_spmd_partitioning: bool = False
    use_auto_spmd_partitioning: bool = False
    propagates_to_parameters: tuple[bool, ...] = ()
    propagates_to_outputs: tuple[bool, ...] = ()
    use_shardy_partitioner: bool = False
    alias_passthrough_params: bool = False
    auto_mesh_shape: tuple[int, ...] = ()
    auto_mesh_ids: tuple[int, ...] = ()
    process_index: int = 0
    process_count: int = 0

    def options(self) -> Options:
        """heron's options: those of the environment, changed by the overrides. Raises PJRT005 for one that is none."""
        settings = []
        theirs = {name: value for name, value in self.overrides.items() if name.startswith("xla_")}
        for check in XLA_CHECKS if theirs else ():
            if wrong := check(theirs):
                raise HeronError("PJRT005", wrong, hint="XLA's options do nothing under heron: leave them out")
        for name, value in self.overrides.items():
            if name == CALLBACKS:
                continue
            if name.startswith(PREFIX):
                settings.append(f"{name.removeprefix(PREFIX)}={value}")
            elif not name.startswith("xla_"):
                hint = f"heron's own are {PREFIX}threads, {PREFIX}math, … (`heron compile --help`)"
                raise HeronError("PJRT005", f"No such compile option: '{name}'", hint=hint)
        return Options.from_env().with_settings(settings)

    @property
    def callbacks(self) -> tuple[int, ...]:
        """Numbers of the functions the program's calls of Python have by index; none where the index is the number."""
        return tuple(int(n) for n in str(self.overrides.get(CALLBACKS, "")).split(",") if n)

    def devices(self) -> list[int]:
        """Numbers of the devices, all partitions of one replica after another."""
        if self.device_assignment:
            return [d for replica in self.device_assignment for d in replica]
        if self.num_replicas * self.num_partitions == 1:
            return [max(self.device_ordinal, 0)]
        return list(range(self.num_replicas * self.num_partitions))

    def assignment_bytes(self) -> bytes:
        """The device assignment as the bytes of a DeviceAssignmentProto."""
        devices = self.devices()
        counts = wire.number(1, self.num_replicas) + wire.number(2, self.num_partitions)
        columns = (devices[n :: self.num_partitions] for n in range(self.num_partitions))
        return counts + b"".join(wire.text(_COMPUTATION_DEVICES, wire.packed(1, ids)) for ids in columns)

    def serialize(self) -> bytes:
        """The bytes of a CompileOptionsProto with what heron reads of one."""
        build = b"".join(wire.number(n, getattr(self, name)) for name, n in (_NUMBERS | _FLAGS).items())
        build += b"".join(wire.packed(n, getattr(self, name)) for name, n in (_FLAG_LISTS | _NUMBER_LISTS).items())
        build += wire.text(_ASSIGNMENT, self.assignment_bytes())
        return wire.text(_BUILD_OPTIONS, build) + b"".join(
            wire.text(_OVERRIDES, wire.text(1, name.encode()) + wire.text(2, _override_bytes(value)))
            for name, value in self.overrides.items()
        )

    @staticmethod
    def parse(data: bytes) -> CompileOptions:
        """From the bytes of a CompileOptionsProto; fields that say nothing to heron are passed over.

        Raises PJRT006 for bytes that are none.
        """
        build: dict[int, list[Any]] = {}
        overrides: dict[str, Any] = {}
        for number, value in wire.fields(data):
            if number == _BUILD_OPTIONS:
                for inner, part in wire.fields(value):
                    build.setdefault(inner, []).append(part)
            elif number == _OVERRIDES:
                name, override = _override(value)
                overrides[name] = override
        found: dict[str, Any] = {"overrides": overrides, "device_assignment": _assignment(build.get(_ASSIGNMENT, ()))}
        found |= {name: wire.signed(build[n][-1]) for name, n in _NUMBERS.items() if n in build}
        found |= {name: bool(build[n][-1]) for name, n in _FLAGS.items() if n in build}
        for kind, names in ((bool, _FLAG_LISTS), (int, _NUMBER_LISTS)):
            found |= {name: _all(build[n], kind) for name, n in names.items() if n in build}
        counts = {name: found.get(name) or 1 for name in ("num_replicas", "num_partitions")}
        return CompileOptions(**{**found, **counts})


def _all(entries: Sequence[int | bytes], kind: type) -> tuple[Any, ...]:
    return tuple(kind(v) for entry in entries for v in wire.integers(entry))


def _assignment(entries: Sequence[bytes]) -> tuple[tuple[int, ...], ...]:
    """The device assignment in the bytes of a DeviceAssignmentProto, if there is one."""
    columns = [
        [d for inner, ids in wire.fields(devices) if inner == 1 for d in wire.integers(ids)]
        for entry in entries[-1:]
        for number, devices in wire.fields(entry)
        if number == _COMPUTATION_DEVICES
    ]
    return tuple(zip(*columns, strict=True))


def _override(data: bytes) -> tuple[str, Any]:
    entry = dict(wire.fields(data))
    kind, value = next(wire.fields(entry.get(2, b"")), (1, b""))
    readers = {
        1: lambda v: v.decode(errors="replace"),
        2: bool,
        3: wire.signed,
        4: wire.from_double,
    }
    return entry.get(1, b"").decode(errors="replace"), readers[kind](value)


def _override_bytes(value: Any) -> bytes:
    """A value as the bytes of an OptionOverrideProto."""
    if isinstance(value, bool):
        return wire.number(2, value)
    if isinstance(value, int):
        return wire.number(3, value)
    if isinstance(value, float):
        return wire.double(4, value)
    return wire.text(1, str(value).encode())
