"""Block kernels on the simulated GPU: the ops of their text in NumPy, for many programs of the grid at once.

A value has the programs as its first dimension (of size 1 where all have the same). Accesses outside an argument are
found always; with the check for races also elements that two programs write.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.runtime.sim import ttir
from heron.runtime.sim.block_ops import OPS, Descriptor, Pointers
from heron.runtime.sim.findings import Facts
from heron.runtime.sim.state import CHECKS, selected
from heron.runtime.sim.ttir import Body, Op

#: elements of a tile that are computed at once, over all programs
_AT_ONCE = 1 << 21
#: what ends a body, and hands on values
_ENDS = frozenset({"scf.yield", "tt.return", "tt.reduce.return"})


#: ops that a run does itself
_OF_RUN = frozenset({"tt.get_program_id", "tt.load", "tt.store", "tt.descriptor_load", "scf.for", "tt.reduce"})


class BlockKernel:
    """A block kernel, ready to launch on ``programs`` programs."""

    def __init__(self, text: str, programs: int, checks: str = "", facts: Facts | None = None) -> None:
        """``text``: what Triton would get. Raises ValueError for what is no block kernel."""
        self.kernel = ttir.read(text)
        self.name, self.programs = self.kernel.name, programs
        self.checks, self.facts = selected(checks), facts or Facts()
        ops = list(_all(self.kernel.body))
        if unknown := {op.name for op in ops} - OPS.keys() - _ENDS - _OF_RUN:
            raise ValueError(f"there is no op {min(unknown)} in block kernels")
        self.at_once = max(1, _AT_ONCE // max((prod(op.shape) for op in ops), default=1))

    def fills(self, argument: int) -> bool:
        """Is that argument the kernel's to write, and never read by it?"""
        return argument in self.facts.outputs

    def __call__(self, buffers: Sequence[tuple[int, int]], shadow: object = None, valid: Sequence[int] = ()) -> None:
        """Run the grid on (address, bytes) of every argument; ``valid``: see `SimKernel`.

        Raises RUN075 for an access outside its argument, RUN076 for an element that two programs write.
        """
        arrays = [_array(*b, ttir.dtype_of(t)) for b, t in zip(buffers, self.kernel.types, strict=True)]
        looks = bool(self.checks & CHECKS["races"]) or any(valid)
        written = [np.zeros(a.size, bool) if looks else None for a in arrays]
        for first in range(0, self.programs, self.at_once):
            numbers = np.arange(first, min(first + self.at_once, self.programs), dtype=np.int32)
            with np.errstate(all="ignore"):
                _Run(self, arrays, written, numbers).block(self.kernel.body)
        for address, array, done in zip(valid, arrays, written, strict=False):
            if address and done is not None:
                _array(address, array.nbytes, np.dtype(np.uint8))[np.repeat(done, array.itemsize)] = 1


class _Run:
    """Some programs of a launch."""

    def __init__(
        self, kernel: BlockKernel, arrays: list[np.ndarray], written: list[np.ndarray | None], numbers: np.ndarray
    ) -> None:
        self.kernel, self.arrays, self.written, self.numbers = kernel, arrays, written, numbers
        self.of: dict[str, Any] = {}
        for n, argument in enumerate(kernel.kernel.body.arguments):
            self.of[argument] = Pointers(n, np.zeros(1, np.int64))

    def block(self, body: Body) -> list[Any]:
        """Run a body's ops; what its last one hands on."""
        for op in body.ops:
            given = [self.of[o] for o in op.operands]
            if op.name in _ENDS:
                return given
            match op.name:
                case "tt.get_program_id":
                    results = [self.numbers]
                case "tt.load":
                    results = [self.load(op, *given)]
                case "tt.descriptor_load":
                    results = [self.fetch(op, *given)]
                case "tt.store":
                    results = []
                    self.store(op, *given)
                case "scf.for":
                    results = self.loop(op, *given)
                case "tt.reduce":
                    results = [self.reduce(op, given[0])]
                case _:
                    results = [OPS[op.name](op, *given)]
            self.of.update(zip(op.results, results, strict=True))
        return []

    def loop(self, op: Op, lo: np.ndarray, hi: np.ndarray, step: np.ndarray, *carried: Any) -> list[Any]:
        values = list(carried)
        assert op.body is not None
        for k in range(int(lo[0]), int(hi[0]), int(step[0])):
            self.of.update(zip(op.body.arguments, [np.array([k], np.int32), *values], strict=True))
            values = self.block(op.body)
        return values

    def reduce(self, op: Op, x: np.ndarray) -> np.ndarray:
        """Halves combined until one is left, as a GPU does it."""
        body, axis = op.body, op.number("axis") + 1
        assert body is not None
        while x.shape[axis] > 1:
            halves = np.split(x, 2, axis)
            self.of.update(zip(body.arguments, halves, strict=True))
            (x,) = self.block(body)
        return x.squeeze(axis)

    def load(self, op: Op, at: Pointers, mask: np.ndarray | None = None, other: Any = None) -> np.ndarray:
        offsets, mask = self._inside(op, at, mask)
        found = self.arrays[at.argument][offsets]
        return found if mask is None else np.where(mask, found, other)

    def fetch(self, op: Op, d: Descriptor, row: np.ndarray, column: np.ndarray) -> np.ndarray:
        """A tile of a matrix by its descriptor: what lies outside the matrix is 0."""
        offsets, mask = d.base.offsets.reshape(-1, 1, 1), np.ones((1, 1, 1), bool)
        for n, first in enumerate((row, column)):
            places = first.reshape(-1, 1) + np.arange(op.shape[n])
            places = places[:, :, None] if n == 0 else places[:, None, :]
            offsets = offsets + places * d.strides[n].reshape(-1, 1, 1)
            mask = mask & (places >= 0) & (places < d.sizes[n].reshape(-1, 1, 1))
        return self.load(op, Pointers(d.base.argument, offsets), mask, self.arrays[d.base.argument].dtype.type(0))

    def store(self, op: Op, at: Pointers, value: np.ndarray, mask: np.ndarray | None = None) -> None:
        offsets, mask = self._inside(op, at, mask)
        shape = (len(self.numbers), *np.broadcast_shapes(offsets.shape, value.shape)[1:])
        offsets, value = np.broadcast_to(offsets, shape), np.broadcast_to(value, shape)
        if mask is not None:
            mask = np.broadcast_to(mask, shape)
            offsets, value = offsets[mask], value[mask]
        self._note(op, at.argument, offsets.reshape(-1))
        self.arrays[at.argument][offsets] = value

    def _inside(self, op: Op, at: Pointers, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """Offsets that may be used; RUN075 when one that is wanted lies outside."""
        size = self.arrays[at.argument].size
        outside = (at.offsets < 0) | (at.offsets >= size)
        if mask is None:
            if outside.any():
                raise self._error("RUN075", op, at, int(at.offsets[outside].flat[0]))
            return at.offsets, None
        wanted = outside & mask
        if wanted.any():
            offsets = np.broadcast_to(at.offsets, wanted.shape)
            raise self._error("RUN075", op, at, int(offsets[wanted].flat[0]))
        return np.where(outside, 0, at.offsets), mask

    def _note(self, op: Op, argument: int, offsets: np.ndarray) -> None:
        written = self.written[argument]
        if written is None:
            return
        if not self.kernel.checks & CHECKS["races"]:
            written[offsets] = True
            return
        elements, counts = np.unique(offsets, return_counts=True)
        twice = elements[(counts > 1) | written[elements]]
        if twice.size:
            raise self._error("RUN076", op, Pointers(argument, offsets), int(twice[0]))
        written[elements] = True

    def _error(self, code: str, op: Op, at: Pointers, element: int) -> HeronError:
        facts, size = self.kernel.facts, self.arrays[at.argument].size
        known = at.argument < len(facts.arguments)
        name = facts.arguments[at.argument][0] if known else f"argument {at.argument}"
        what = f"element {element} of {name}, which has {size}"
        story = "is outside" if code == "RUN075" else "is written by two programs"
        return HeronError(code, f"block kernel '{self.kernel.name}': {what}, {story}", where=f"{op.name}: {facts.hlo}")


def _array(address: int, size: int, dtype: np.dtype) -> np.ndarray:
    whole = size // dtype.itemsize * dtype.itemsize
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))[:whole].view(dtype)


def _all(body: Body) -> Iterator[Op]:
    """The ops of a body and of those in it."""
    for op in body.ops:
        yield op
        if op.body is not None:
            yield from _all(op.body)
