"""The record of one compile: stages, changes, decisions with their reasons, results."""

from heron.trace.record import Decision, KernelRecord, PassRecord, Stage, Trace

__all__ = ["Decision", "KernelRecord", "PassRecord", "Stage", "Trace"]
