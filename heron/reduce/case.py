"""A case: a program and its inputs, which together show a fault; and how large it is."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from heron import files
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.hlo.text import print_module
from heron.records import dataclass

PROGRAM, INPUTS = "program.hlo", "inputs.npz"
#: what an instruction weighs that is no parameter; one that becomes a parameter makes the program smaller
_WEIGHT = 3


@dataclass(frozen=True)
class Case:
    """A module and one array for each array it takes, tuples flattened. Neither may be changed."""

    module: Module
    inputs: tuple[np.ndarray, ...]

    @cached_property
    def text(self) -> str:
        """The program as HLO text."""
        return print_module(self.module).rstrip("\n") + "\n"

    @cached_property
    def key(self) -> str:
        """A digest of the program's text and of the inputs."""
        digest = hashlib.sha256(self.text.encode())
        for array in self.inputs:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(b"ones" if is_ones(array) else np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:32]

    @cached_property
    def size(self) -> tuple[int, int, int, int]:
        """Sizes in the order in which they count: instructions, elements, characters, inputs that are not all one.

        Instructions count once for each call of their computation, as if all calls were inlined.
        """
        elements = sum(s.num_elements for i in self.module.instructions() for _, s in i.shape.leaves())
        return _weight(self.module), elements, len(self.text), sum(not is_ones(x) for x in self.inputs)

    @property
    def count(self) -> int:
        """The number of instructions, parameters and called computations included."""
        return self.module.instruction_count()

    def with_ones(self) -> Case:
        """The same program on inputs that are all one."""
        return Case(self.module, tuple(ones(x.dtype, x.shape) for x in self.inputs))

    def write(self, folder: Path) -> None:
        """Write the program and its inputs into a folder. Raises CLI012."""
        with files.replacing(str(folder / INPUTS)) as out:
            np.savez(out, *map(storable, self.inputs))
        files.write_text(folder / PROGRAM, self.text)


def ones(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of ones, which takes no memory and may not be changed."""
    return np.broadcast_to(np.ones((), dtype), shape)


def is_ones(array: np.ndarray) -> bool:
    """Whether all elements are one."""
    return bool((array == 1).all())


def storable(array: np.ndarray) -> np.ndarray:
    """The array, as unsigned integers where NumPy's files lack its dtype; `heron run --inputs` takes them back."""
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")


def _weight(module: Module) -> int:
    weights: dict[Computation, int] = {}
    for c in module.post_order():
        own = sum(1 if i.opcode == "parameter" else _WEIGHT for i in c.instructions)
        weights[c] = own + sum(weights[callee] for i in c.instructions for callee in i.called)
    return weights[module.entry]


def split(module: Module, inputs: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """The arrays of each parameter."""
    rest = iter(inputs)
    return [[next(rest) for _, s in p.shape.leaves() if s.is_array] for p in module.entry.parameters]
