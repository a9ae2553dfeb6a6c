"""The record of one compile: stages, changes, decisions with their reasons, results."""

from heron.trace.record import Decision, KernelRecord, PassRecord, Stage
from heron.trace.trace import Trace

__all__ = ["Decision", "KernelRecord", "PassRecord", "Stage", "Trace"]
