"""What full programs should give: the CPU's values at some places of each output, so that a file of them is small."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks import programs
from heron.cli import compare, values
from heron.hlo.text import parse

#: absolute tolerances, in parts of the largest magnitude, of full programs whose values depend on the order of sums by
#: more than their types' tolerances: XLA:CPU and heron on the CPU differ by 1.5e-2 and 2e-5 there. The first rounds
#: scores and their gradients to bf16 in every step; the second sums gradients over a batch that nearly cancel.
CLOSE = {"attention_bf16_grad": 3e-2, "resnet_block_grad": 1e-4}
#: places looked at in an output; all of a smaller one
PLACES = 4096


@dataclass(frozen=True)
class Output:
    """An output: its dimensions, the largest magnitude in it, and its values at `places`."""

    dims: tuple[int, ...]
    largest: float
    values: np.ndarray

    @classmethod
    def of(cls, array: np.ndarray) -> Output:
        """What to keep of an output."""
        flat = np.ascontiguousarray(array).reshape(-1)
        return cls(array.shape, compare.magnitude(array), flat[places(flat.size)])

    def error(
        self, got: np.ndarray, rtol: float | None = None, atol: float | None = None, close: float | None = None
    ) -> str:
        """How an array differs from this output; empty when it is within the tolerances of ``heron run --expect``.

        ``close``: an absolute tolerance in parts of the largest magnitude.
        """
        if got.shape != self.dims:
            return f"{list(got.shape)} instead of {list(self.dims)}"
        here = np.ascontiguousarray(got).reshape(-1)[places(got.size)]
        own_rtol, _ = compare.tolerances(self.values, rtol, atol)
        bound = (own_rtol if close is None else close) * self.largest if atol is None else atol
        found = compare.compare(0, here, self.values, own_rtol, bound)
        if found.ok:
            return ""
        return (
            f"{found.mismatches} of {here.size} values differ by up to {found.max_abs:.3g} ({found.actual}, expected "
            f"{found.expected}; the largest is {self.largest:.3g})"
        )


def places(size: int) -> np.ndarray:
    """Which elements are looked at: always the same ones of that size."""
    if size <= PLACES:
        return np.arange(size)
    return np.unique(np.random.default_rng(size).integers(0, size, PLACES))


def inputs(name: str) -> list[np.ndarray]:
    """The arguments full programs are tried on."""
    return values.random(parse(programs.path(name, platform="cuda").read_text()), 0)


def outputs(name: str, arrays: list[np.ndarray]) -> list[Output]:
    """What the full program gives on the CPU. Raises what its compile raises."""
    import heron

    module = parse(programs.path(name, platform="cuda").read_text())
    return [Output.of(a) for a in heron.compile(module).run(arrays)]


def write(path: str, found: list[Output]) -> None:
    """Keep them in a file."""
    facts = [np.array([o.largest, *o.dims]) for o in found]
    values.write(path, facts, [o.values for o in found])


def read(path: str) -> list[Output]:
    """What `write` wrote."""
    held = values.read(path)
    return [
        Output(tuple(int(n) for n in facts[1:]), float(facts[0]), array)
        for facts, array in zip(held.inputs, held.outputs, strict=True)
    ]
