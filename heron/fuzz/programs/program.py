"""Generated programs: small valid modules with inputs, drawn by any source of choices.

The difference that two backends may have is known for every output, so that a comparison needs no tolerance that could
hide a fault. Most float values are integers small enough for all arithmetic on them to be exact whatever its order;
only these are compared, rounded or made integers. Values from functions such as tanh carry a bound of their error
along. Structure is what varies: shapes (with size-1 and odd dimensions), fan-out, ranks, element types, loops.

`state` has what is known of a program being made. A step makes one value from others: those that compute element by
element are in `arithmetic`, more functions in `functions`, the steps that move elements in `moves`, those that call
computations in `calls`, and convolutions, transforms and linear algebra in `algebra`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from heron.fuzz.choices import Choices
from heron.fuzz.programs.algebra import ALGEBRA
from heron.fuzz.programs.arithmetic import ARITHMETIC
from heron.fuzz.programs.calls import CALLS
from heron.fuzz.programs.functions import FUNCTIONS
from heron.fuzz.programs.moves import MOVES
from heron.fuzz.programs.state import State
from heron.hlo.builder import Builder
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import BF16, F16, F32, F64, PRED, S8, S16, S32, S64, U8, U32, ElementType

ALL_TYPES = (F32, S32, BF16, F16, F64, PRED, S8, U8, S16, S64, U32)
_STEPS: dict[str, Callable[[State], Instruction | None]] = {**ARITHMETIC, **FUNCTIONS, **MOVES, **CALLS, **ALGEBRA}


class Program(NamedTuple):
    """A module, arrays for its parameters, and by how much each output may be off."""

    module: Module
    inputs: list[np.ndarray]
    errors: list[float]


def program(choices: Choices, types: Sequence[ElementType] = ALL_TYPES, max_ops: int = 12) -> Program:
    """A module with inputs for its parameters; its element types are some of `types`, and s32, pred and f32."""
    some = tuple(choices.several(types, 1, 3, unique=True))
    s = State(choices, Builder("generated"), some)
    inputs = [s.parameter(n) for n in range(choices.integer(1, 3))]
    if choices.flag():  # what indices and branches may depend on
        inputs.append(s.parameter(len(inputs), S32))
    for _ in range(choices.integer(1, max_ops)):
        made = _STEPS[choices.one_of(sorted(_STEPS))](s)
        if made is not None:
            s.values.append(made)
    found = [v for v in s.values if not v.users and v.opcode != "parameter"][-4:] or s.values[-1:]
    module = s.b.build(found[0] if len(found) == 1 else s.b.tuple(*found))
    return Program(module, inputs, [s.facts[v].error for v in found])
