"""The faults that a reduction can be about, one check a file."""

from heron.reduce.checks.command import Command
from heron.reduce.checks.crashes import LOST, Crashes
from heron.reduce.checks.differs import Differs
from heron.reduce.checks.finding import FINE, REFERENCE, Check, Finding, is_alike, is_same
from heron.reduce.checks.slow import SlowCompile

__all__ = [
    "FINE",
    "LOST",
    "REFERENCE",
    "Check",
    "Command",
    "Crashes",
    "Differs",
    "Finding",
    "SlowCompile",
    "is_alike",
    "is_same",
]
