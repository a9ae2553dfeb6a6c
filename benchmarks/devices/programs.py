"""All programs: importing this registers them."""

from benchmarks.devices import blocks, control, manual, methods, moves, steps, training
from benchmarks.devices.case import PROGRAMS

__all__ = ["PROGRAMS", "blocks", "control", "manual", "methods", "moves", "steps", "training"]
