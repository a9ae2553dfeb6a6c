"""Routines no library here has, by their meaning: the evaluator computes them on the host."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A program of one call, as text, on that many arrays; its results follow them."""

    name: str
    program: str
    operands: int

    def __str__(self) -> str:
        return self.name

    def __call__(self, *arrays: np.ndarray) -> None:
        from heron.evaluator import evaluate

        found = evaluate(_module(self.program), *arrays[: self.operands])
        for out, value in zip(arrays[self.operands :], found, strict=True):
            out[...] = value


@cache
def _module(text: str) -> Module:
    from heron.hlo.text import parse

    return parse(text)
