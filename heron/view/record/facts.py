"""The facts in every saved trace: the program, its buffers, its estimated steps, its devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron.analysis.cost.program import program_cost
from heron.analysis.cost.report import exchange_to_json, to_json
from heron.analysis.cost.step import step_cost
from heron.analysis.sharding.program import mesh_of
from heron.buffers.memory import Memory
from heron.buffers.profile import MemoryProfile
from heron.buffers.report import to_json as buffers_to_json
from heron.errors import HeronError
from heron.hlo.sharding import Sharding
from heron.hlo.sharding import parse as parse_sharding
from heron.hlo.text.record import record
from heron.runtime.collectives.spread import Array

if TYPE_CHECKING:
    from heron.backends.compiler import Compilation
    from heron.targets import Target
    from heron.trace import Trace

#: devices of which a picture shows the tiles
_DRAWN = 256


def keep(trace: Trace, compilation: Compilation) -> None:
    """Write the facts of a compiled program into its trace."""
    module, target = compilation.scheduled, compilation.target
    trace.program = record(module, {i.calls: key for i, key in compilation.alike.items()})
    profile = MemoryProfile(compilation.buffers)
    trace.buffers = {**buffers_to_json(compilation.buffers), "profile": profile.to_json()}
    trace.memory = trace.memory or dict(Memory.of(compilation.buffers))
    trace.costs = {**to_json(program_cost(module, target, compilation.alike), target), "machine": _machine(target)}
    trace.devices = _devices(compilation)


def _machine(target: Target) -> dict[str, Any]:
    """The roofs of the machine: bytes and operations a second."""
    return {
        "description": target.description,
        "memory_bandwidth": target.memory_bandwidth,
        "memory_bytes": target.memory_bytes,
        "flops": {unit: rate for unit, rate in target.flops},
    }


def _devices(compilation: Compilation) -> dict[str, Any]:
    """The mesh, the arrays that callers see, the collectives and the time of a run; empty for one device."""
    spread, module, target = compilation.spread, compilation.scheduled, compilation.target
    if spread.devices == 1:
        return {}
    step = step_cost(module, target)
    names = [p.name for p in compilation.source.entry.parameters]
    arguments = zip(names, spread.arguments, strict=False)
    return {
        "mesh": _mesh(compilation),
        "replicas": spread.replicas,
        "partitions": spread.partitions,
        "seconds": step.seconds,
        "compute_seconds": step.compute,
        "communication_seconds": step.communication,
        "exposed_seconds": step.exposed,
        "wire_bytes": step.wire_bytes,
        "links": [{"name": k.name, "devices": k.devices, "bandwidth": k.bandwidth} for k in target.links],
        **_arrays([*arguments, *((f"result {n}", a) for n, a in enumerate(spread.outputs))], spread.partitions),
        "collectives": [exchange_to_json(e) for e in step.exchanges],
    }


def _arrays(arrays: list[tuple[str, Array]], partitions: int) -> dict[str, Any]:
    """``arrays``: name, shape, sharding and the number of its tiling; ``tilings``, each kept once."""
    tilings: dict[Array, int] = {}
    rows = [[name, str(a.shape), a.sharding, tilings.setdefault(a, len(tilings))] for name, a in arrays]
    return {"arrays": rows, "tilings": [_tiling(a, partitions) for a in tilings]}


def _tiling(a: Array, partitions: int) -> dict[str, Any]:
    """``tiles``: the index ranges of each tile; ``of``: the number of the tile that each of the first devices has."""
    sharding = parse_sharding(a.sharding).plain if a.sharding else Sharding.replicated()
    tiles: dict[str, int] = {}
    of = []
    for device in range(min(partitions, _DRAWN)):
        if not sharding.uses_device(device):
            of.append(-1)
            continue
        first, last = sharding.tile_offset(a.shape, device), sharding.tile_limit(a.shape, device)
        ranges = ", ".join(f"{low}:{high}" for low, high in zip(first, last, strict=True))
        of.append(tiles.setdefault(ranges, len(tiles)))
    return {"tiles": list(tiles), "of": of}


def _mesh(compilation: Compilation) -> list[list[Any]]:
    """Names and sizes of the axes; one axis where the program names none."""
    try:
        return [[name, size] for name, size in mesh_of(compilation.source).axes]
    except HeronError:  # it is for one device of the partitions already, and says nothing of them
        return [["devices", compilation.spread.devices]]
