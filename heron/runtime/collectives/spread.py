"""Arrays of programs for several devices: cut into those of each device before a run, and joined after it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Sharding, parse
from heron.hlo.sharding.cutting import share, whole
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Array:
    """An array as callers see it: its shape, and the sharding over the partitions as text; empty if nobody says."""

    shape: Shape
    sharding: str = ""


@dataclass(frozen=True, slots=True)
class Spread:
    """The devices of a program, and its flat arguments and outputs. Replicas all get the same arguments."""

    replicas: int = 1
    partitions: int = 1
    arguments: tuple[Array, ...] = ()
    outputs: tuple[Array, ...] = ()

    @property
    def devices(self) -> int:
        return self.replicas * self.partitions

    @property
    def is_known(self) -> bool:
        """Whether the program says how all of its arrays are spread."""
        return self.partitions == 1 or all(a.sharding for a in (*self.arguments, *self.outputs))

    def cut(self, arrays: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """Each device's arguments out of global ones.

        Raises RUN001, RUN003 and RUN086.
        """
        if len(arrays) != len(self.arguments):
            raise HeronError("RUN001", f"the program takes {len(self.arguments)} arrays, {len(arrays)} given")
        for n, (given, wanted) in enumerate(zip(arrays, self.arguments, strict=True)):
            if given.shape != wanted.shape.dims:
                what = f"argument {n} has shape {list(given.shape)}, the program takes {wanted.shape.bare}"
                raise HeronError("RUN003", what)
        shardings = [self._sharding(a, f"argument {n}") for n, a in enumerate(self.arguments)]
        rows: list[list[np.ndarray]] = []
        for partition in range(self.partitions):
            each = zip(arrays, self.arguments, shardings, strict=True)
            rows.append([share(x, a.shape, s, partition) for x, a, s in each])
        return rows * self.replicas

    def join(self, rows: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        """Global outputs out of those of each device of the first replica. Raises RUN086."""
        found: list[np.ndarray] = []
        for n, output in enumerate(self.outputs):
            sharding = self._sharding(output, f"output {n}")
            found.append(whole([row[n] for row in rows[: self.partitions]], output.shape, sharding))
        return found

    def _sharding(self, a: Array, what: str) -> Sharding:
        if a.sharding or self.partitions == 1:
            return parse(a.sharding).plain if a.sharding else Sharding.replicated()
        raise HeronError(
            "RUN086",
            f"the program does not say how {what} is spread over its {self.partitions} partitions",
            why="a program that was partitioned elsewhere has local shapes alone",
            hint="run_devices takes and gives the arrays of each device",
        )
