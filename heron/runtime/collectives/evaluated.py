"""Collectives of simulated devices: by the meaning of the op, among devices that take turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.once import once
from heron.records import dataclass
from heron.runtime.collectives import current

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Value


@dataclass(frozen=True, slots=True)
class OnDevices:
    """A routine on the arrays of a collective: its operands', then its results'. ``program``: a module of it alone."""

    opcode: str
    program: str

    @staticmethod
    def of(i: Instruction, module: Module) -> OnDevices:
        """The routine of an instruction of a module for several devices."""
        alone, c = Module("collective"), Computation("main")
        alone.set_counts(module.replica_count, module.num_partitions)
        alone.add_computation(c, entry=True)
        operands = [c.add_parameter(n, o.shape.bare) for n, o in enumerate(i.operands)]
        c.root = c.attach(i.clone(operands))
        return OnDevices(i.opcode, str(alone))

    def __str__(self) -> str:
        return self.opcode

    def __call__(self, *arrays: np.ndarray) -> None:
        """Raises RUN089 where no devices are simulated, and what the evaluator raises of collectives."""
        evaluator = current.evaluator()
        if evaluator is None:
            what = f"'{self.opcode}' needs the other devices of the program"
            raise HeronError("RUN089", what, hint="`run_devices` runs the program on all of them")
        i = _instruction(self.program)
        rest = iter(arrays)
        value = evaluator.run_instruction(i, [_value(o.shape, rest) for o in i.operands])
        for place, result in zip(rest, _arrays(value), strict=True):
            if place is not result:
                place[...] = result


def _value(shape: Shape, rest: Iterator[np.ndarray]) -> Any:
    if shape.tuple_shapes is not None:
        return tuple([_value(s, rest) for s in shape.tuple_shapes])
    return next(rest).copy() if shape.is_array else None


def _arrays(value: Value) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif value is not None:
        yield value


@once
def _instruction(text: str) -> Instruction:
    from heron.hlo.text import parse

    return parse(text).entry.root
