"""The outcome of a check on one case, and when two outcomes are the same fault."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from heron.hlo.ir.module import Module
from heron.records import dataclass

#: the outcome of a check that finds nothing wrong
FINE = "fine"
#: of a check that compares: what is compared with cannot run the program
REFERENCE = "reference"


@dataclass(frozen=True)
class Finding:
    """The outcome of a check.

    ``kind``: `FINE`, or the word for what is wrong. ``sign``: by what the fault is known again, such as an error code.
    ``amount``: how bad it is, in the check's own measure. ``text``: the fault for people. ``culprit``: for people, the
    pass that does it, where a check can tell. ``near``: the places of the fault, the likeliest first, where a check can
    tell: names of instructions, the nearest first. The search looks there first. ``outputs``: those that are wrong, of
    a check on values.
    """

    kind: str
    sign: str = ""
    amount: float = 0.0
    text: str = ""
    culprit: str = ""
    near: tuple[tuple[str, ...], ...] = ()
    outputs: tuple[int, ...] = ()

    def is_fault(self) -> bool:
        """Whether anything is wrong."""
        return self.kind != FINE


class Check(ABC):
    """A way to look for a fault; pickled to the process that does."""

    #: the kinds of findings that the check is about
    kinds: ClassVar[tuple[str, ...]]
    #: whether the fault may depend on the values of the inputs
    reads_inputs: ClassVar[bool] = True

    @abstractmethod
    def look(self, module: Module, inputs: Sequence[np.ndarray]) -> Finding:
        """The outcome on a program with its inputs. The program may be changed."""

    @abstractmethod
    def options(self) -> str:
        """The options of `heron reduce` that ask for this check."""

    def bar(self, first: Finding) -> float:
        """The amount from which a smaller program counts as showing `first`."""
        return 0.0

    def blame(self, module: Module, inputs: Sequence[np.ndarray]) -> str:
        """The pass, and the rewrite of it, behind the fault; empty where none is known."""
        return ""


def is_alike(first: Finding, now: Finding) -> bool:
    """Whether `now` is a fault of the sort that `first` was, however bad."""
    return now.kind == first.kind and now.sign == first.sign


def is_same(check: Check, first: Finding, now: Finding) -> bool:
    """Whether `now` is the fault that `first` was."""
    return is_alike(first, now) and now.amount >= check.bar(first)
