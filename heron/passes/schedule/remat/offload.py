"""Offload: what moving a value to the host's memory and back would take, instead of computing it again.

No program does it yet: this is where the choice would be made, and the trace says where it would fall.
"""

from __future__ import annotations

from heron.records import dataclass
from heron.targets import Target


@dataclass(frozen=True, slots=True)
class Offload:
    """A way to the host's memory: `bandwidth` in bytes a second, one way."""

    bandwidth: float

    @staticmethod
    def of(target: Target) -> Offload | None:
        """The machine's way to the host; a CPU has none."""
        return Offload(target.host_bandwidth) if target.is_gpu and target.host_bandwidth else None

    def seconds(self, size: int) -> float:
        """Time to move so many bytes there and back."""
        return 2 * size / self.bandwidth
