"""The devices that a program runs on."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Devices:
    """``replicas × partitions`` devices; device ``r * partitions + p`` is partition p of replica r."""

    replicas: int
    partitions: int

    @staticmethod
    def of(module: Module) -> Devices:
        """The devices of a module."""
        return Devices(module.replica_count, module.num_partitions)

    @property
    def count(self) -> int:
        return self.replicas * self.partitions

    def __str__(self) -> str:
        return f"{self.replicas} x {self.partitions} devices"


ONE = Devices(1, 1)
