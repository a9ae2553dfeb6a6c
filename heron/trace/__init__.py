"""The record of one compile: what ran, what changed, what was decided and why, what came out."""

from heron.trace.record import Decision, KernelRecord, PassRecord, Stage, Trace

__all__ = ["Decision", "KernelRecord", "PassRecord", "Stage", "Trace"]
