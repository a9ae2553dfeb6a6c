"""The evaluator: what an HLO program means, run with NumPy, one op at a time.

It is the definition every pass and backend is checked against: slow where it must be, never clever about results.
Each op brings its own meaning (`Op.evaluate` in heron/hlo/ops); this file walks computations and checks inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.computation import Computation
from heron.hlo.evaluation import batched
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.shape import Shape

#: an array, None for a token, or a tuple of values
Value = Any
Watcher = Callable[[Instruction, Value], None]


class Evaluator:
    """Runs computations. Caches orders of computations, so make a new one after changing the module.

    Args:
        module: the program; None to run single computations or instructions.
        on_value: called with each instruction and its value as it is computed, in called computations too.
        seed: of the numbers `rng` draws.

    A single device takes part: replica 0 of partition 0.
    """

    def __init__(self, module: Module | None = None, on_value: Watcher | None = None, seed: int = 0) -> None:
        self.module = module
        self.on_value = on_value
        self.random = np.random.default_rng(seed)
        self.rng_state = seed
        self._orders: dict[Computation, list[Instruction]] = {}
        self._steps: dict[Computation, list[tuple[Instruction, list[Instruction]]]] = {}
        self._batchable: dict[Computation, bool] = {}

    # -- running -----------------------------------------------------------------------------------------------------
    def run(self, *arrays: np.ndarray) -> Value:
        """The entry computation's value. ``arrays`` are its parameters, tuples flattened.

        Raises EVAL002 (wrong number of inputs), EVAL003 (wrong dtype or shape).
        """
        if self.module is None:
            raise HeronError("EVAL002", "this evaluator was made without a module to run")
        entry = self.module.entry
        return self.call(entry, *bind([p.shape for p in entry.parameters], arrays))

    def call(self, computation: Computation, *values: Value) -> Value:
        """The value of `computation` on those parameters."""
        steps = self._steps.get(computation)
        if steps is None:
            steps = self._steps[computation] = _plan(self.order(computation), computation.root)
        known: dict[Instruction, Value] = {}
        on_value = self.on_value
        with np.errstate(all="ignore"):
            for i, last_used in steps:
                if i.opcode == "parameter":
                    value = values[i.attrs["number"]]
                else:
                    value = self.run_instruction(i, [known[o] for o in i.operands])
                known[i] = value
                if on_value is not None:
                    on_value(i, value)
                for dead in last_used:
                    del known[dead]
        return known[computation.root]

    def run_instruction(self, i: Instruction, values: Sequence[Value]) -> Value:
        """The value of one instruction on those operand values."""
        try:
            with np.errstate(all="ignore"):
                value = i.op.evaluate(self, i, *values)
        except HeronError as e:
            raise e.located(str(i)) from None
        return value if value is None or isinstance(value, (tuple, np.ndarray)) else np.asarray(value)

    # -- facts about computations, kept ------------------------------------------------------------------------------
    def order(self, computation: Computation) -> list[Instruction]:
        """Instructions, operands first."""
        found = self._orders.get(computation)
        if found is None:
            found = self._orders[computation] = computation.post_order()
        return found

    def is_batchable(self, computation: Computation) -> bool:
        """Whether a scalar computation may run on whole arrays."""
        found = self._batchable.get(computation)
        if found is None:
            found = self._batchable[computation] = batched.is_batchable(computation)
        return found


def evaluate(module: Module, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs of `module` (tuples flattened, tokens left out) on inputs with its parameters' dtypes and shapes.

    Raises EVAL001 (an op cannot be evaluated), EVAL002 (wrong number of inputs), EVAL003 (wrong dtype or shape).
    """
    return flatten(Evaluator(module).run(*arrays))


def flatten(value: Value) -> list[np.ndarray]:
    """The arrays in a value, in order."""
    if value is None:
        return []
    if isinstance(value, tuple):
        return [a for part in value for a in flatten(part)]
    return [np.asarray(value)]


def bind(shapes: Sequence[Shape], arrays: Sequence[np.ndarray]) -> list[Value]:
    """Flat `arrays` as values of `shapes`, checked.

    Raises EVAL002 (wrong number), EVAL003 (wrong dtype or shape), with the numbers.
    """
    leaves = [(n, index, s) for n, shape in enumerate(shapes) for index, s in shape.leaves() if s.is_array]
    if len(leaves) != len(arrays):
        raise HeronError("EVAL002", f"the program takes {len(leaves)} inputs, {len(arrays)} given")
    checked: list[np.ndarray] = []
    for (n, index, s), given in zip(leaves, arrays, strict=True):
        a = np.asarray(given)
        if a.shape != s.dims or a.dtype != s.element_type.dtype:
            part = "".join(f"[{k}]" for k in index)
            raise HeronError(
                "EVAL003",
                f"input {n}{part} is {a.dtype}{list(a.shape)}",
                why=f"the program takes {s.element_type.dtype}{list(s.dims)} ({s})",
            )
        checked.append(a)
    supply = iter(checked)
    return [_assemble(shape, supply) for shape in shapes]


def _assemble(shape: Shape, supply: Any) -> Value:
    if shape.tuple_shapes is not None:
        return tuple(_assemble(s, supply) for s in shape.tuple_shapes)
    return next(supply) if shape.is_array else None


def _plan(order: list[Instruction], root: Instruction) -> list[tuple[Instruction, list[Instruction]]]:
    """Each instruction with the values nobody needs after it."""
    last: dict[Instruction, Instruction] = {}
    for i in order:
        last[i] = i
        for operand in i.operands:
            last[operand] = i
    dead: dict[Instruction, list[Instruction]] = {i: [] for i in order}
    for value, user in last.items():
        if value is not root:
            dead[user].append(value)
    return [(i, dead[i]) for i in order]
