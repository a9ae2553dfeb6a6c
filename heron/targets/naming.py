"""Targets by name: ``cpu`` is this machine; ``x86-64-v3`` a CPU level; ``sm_90`` a GPU, present or not;
``sim:sm_90`` that GPU simulated on the CPU; ``cuda`` the GPU of this machine, ``cuda:1`` its second."""

from __future__ import annotations

import dataclasses
import difflib
import functools

from heron.errors import HeronError
from heron.targets import cuda
from heron.targets.host import host
from heron.targets.target import Target, load, machines


def get(name: str) -> Target:
    """The target of that name. Raises TGT001, with the nearest name, if there is none.

    ``cuda`` and ``cuda:N`` exist on a machine without a GPU too; only running fails there.
    Raises TGT008 where the driver has no GPU of that number, or one too old.
    """
    if name == "cuda" or (name.startswith("cuda:") and name[5:].isdecimal()):
        ordinal = int(name[5:] or 0)
        return cuda.measured(load(cuda.machine(machines(), ordinal)), name, ordinal)
    return _get(name)


@functools.cache
def _get(name: str) -> Target:
    if name == "cpu":
        return host()
    if name.startswith("sim:") and name[4:] in machines() and load(name[4:]).is_gpu:
        return dataclasses.replace(load(name[4:]), name=name, sim=True)
    if name in machines():
        return load(name)
    raise _unknown(name)


def names() -> list[str]:
    """Every name that `get` accepts."""
    gpus = [m for m in machines() if load(m).is_gpu]
    cpus = [m for m in machines() if not load(m).is_gpu]
    return ["cpu", "cuda", *cpus, *gpus, *(f"sim:{m}" for m in gpus)]


def all_targets() -> list[Target]:
    """Every target, `cpu` and `cuda` first."""
    return [get(n) for n in names()]


def _unknown(name: str) -> HeronError:
    near = difflib.get_close_matches(name, names(), 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return HeronError("TGT001", f"unknown target '{name}'", hint=f"{hint}targets are {', '.join(names())}")
