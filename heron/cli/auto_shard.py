"""``heron shard --auto``: shardings for the parameters that have none."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf, isfinite
from typing import Any

from heron.analysis.sharding.links import weighted
from heron.analysis.sharding.parameters import Found, choose_parameters
from heron.analysis.sharding.program import ProgramShardings
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.hlo.sharding.mesh import Mesh
from heron.records import dataclass
from heron.targets import Target
from heron.trace.summary import size

#: the part of the limit that the search plans with: a compiled program may need more than the estimate
ROOM = 0.8
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True, slots=True)
class AutoReport:
    """The parameters that were given shardings: each as the option ``--in`` that says the same."""

    options: list[str]
    found: Found
    limit: float

    def need_fit(self, peak: float, devices: int) -> None:
        """Raise CLI065 where a device's program, as compiled, takes more than the limit."""
        if peak <= self.limit:
            return
        what = f"no shardings were found with which a device needs no more than {size(self.limit)}"
        alone = size(self.found.before.memory)
        why = f"the best of {self.found.tries} programs needs {size(peak)}; with no parameter split more, about {alone}"
        if self.found.tries == 1:
            why = f"no parameter is left to split, and the program needs {size(peak)}"
        hint = f"more than {devices} devices, a higher --memory, or recomputation in the program"
        raise HeronError("CLI065", what, where=f"--memory {size(self.limit)}", why=why, hint=hint)

    def lines(self) -> list[str]:
        """The outcome in words."""
        before, after, tries = self.found.before, self.found.after, self.found.tries
        if tries == 1:
            return ["--auto had nothing to choose: no parameter without a sharding can be split"]
        chosen = " ".join(f"--in {o}" for o in self.options) or "to split no parameter more"
        return [
            f"chosen, of {tries} programs: {chosen}",
            f"cost of a run, in bytes sent: {size(before.cost)} → {size(after.cost)};"
            f" estimated memory of a device: {size(before.memory)} → {size(after.memory)}",
        ]

    def to_json(self) -> dict[str, Any]:
        """Stable fields: `options`, `tries`, `limit` (null for none), `before` and `after`: cost and memory, bytes."""
        ends = {"before": self.found.before, "after": self.found.after}
        return {
            "options": self.options,
            "tries": self.found.tries,
            "limit": self.limit if isfinite(self.limit) else None,
            **{name: {"cost": e.cost, "memory": e.memory} for name, e in ends.items()},
        }


def memory_of_text(text: str | None) -> float:
    """The bytes of ``80GiB``; infinity for none. Raises CLI060."""
    if text is None:
        return inf
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text)
    if match is None:
        raise HeronError("CLI060", f"'{text}' is no size of memory", where=f"--memory {text}", hint="--memory 80GiB")
    return float(match[1]) * _UNITS[match[2]]


def shard_parameters(
    module: Module,
    mesh: Mesh | None,
    limit: float,
    target: Target | None = None,
    told: Callable[[int], None] = lambda _: None,
) -> AutoReport:
    """Give parameters without a sharding the cheapest ones found, over `mesh` or that of the program.
    Bytes count by the links of a machine. ``told``: as for `choose_parameters`."""
    given = ProgramShardings.read(module)
    if mesh is not None and given.mesh.mesh != mesh:
        given = ProgramShardings(AtomicMesh.of(mesh))
    given.mesh = weighted(given.mesh, target)
    found = choose_parameters(module, given, limit * ROOM, told)
    options: list[str] = []
    for n, i in enumerate(module.entry.parameters):
        s = found.shardings.get(i)
        if s is None:
            continue
        i.sharding = given.mesh.write(s)
        if any(s.dims):
            options.append(f"{n}={_entries(given.mesh, s)}")
    return AutoReport(options, found, limit)


def _entries(mesh: AtomicMesh, s: TensorSharding) -> str:
    """The form of ``--in``: ``x+y,-``."""
    names = [[mesh.mesh.axes[axis.number][0] for axis in mesh.merged(axes)] for axes in s.dims]
    return ",".join("+".join(dim) or "-" for dim in names)
