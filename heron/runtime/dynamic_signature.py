"""The signature of programs with bounded sizes: arrays of any size up to the bound go in and come out.

The program itself works on whole arrays and numbers that say how much of them counts.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import numpy as np

from heron.hlo.calls import size_checks
from heron.hlo.calls.size_checks import SizeCheck
from heron.hlo.ir.shape import Shape
from heron.records import dataclass
from heron.runtime.executable import Signature


@dataclass(frozen=True, slots=True)
class DynamicSignature(Signature):
    """The signature of the compiled program, and as `seen` that of its callers."""

    seen: Signature
    #: conditions on sizes the program looks at; what it found are its last three results
    checks: tuple[SizeCheck, ...] = ()

    def check(self, arrays: Seq[Any]) -> list[np.ndarray]:
        """Arguments filled up with zeros, and their sizes. Raises as `Signature.check` does."""
        checked = self.seen.check(arrays)
        shapes = [s for p in self.seen.parameters for _, s in p.leaves() if s.is_array]
        whole = [_filled(a, s) for a, s in zip(checked, shapes, strict=True)]
        sizes = [a.shape[d] for a, s in zip(checked, shapes, strict=True) for d in _dynamic(s)]
        return [*whole, *(np.array(n, np.int32) for n in sizes)]

    def finish(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """Results cut to their sizes, which come after them. Raises RUN004 when a check of sizes failed."""
        shapes = self.seen.outputs
        if self.checks:
            size_checks.need_none_failed(self.checks, *(int(n) for n in outputs[-3:]))
        sizes = iter(outputs[len(shapes) :])
        return [_cut(a, {d: int(next(sizes)) for d in _dynamic(s)}) for a, s in zip(outputs, shapes, strict=False)]

    def pack(self, outputs: Seq[np.ndarray]) -> Any:
        """Flat outputs as the program's result: one array, or nested tuples."""
        return self.seen.pack(outputs)


def _dynamic(s: Shape) -> list[int]:
    return [d for d, marked in enumerate(s.dynamic) if marked]


def _filled(a: np.ndarray, s: Shape) -> np.ndarray:
    if a.shape == s.dims:
        return a
    whole = np.zeros(s.dims, a.dtype)
    whole[tuple(slice(0, n) for n in a.shape)] = a
    return whole


def _cut(a: np.ndarray, sizes: dict[int, int]) -> np.ndarray:
    return a[tuple(slice(0, sizes.get(d, n)) for d, n in enumerate(a.shape))]
