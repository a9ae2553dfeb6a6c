"""A program on one of the machines that can be compared: the evaluator, XLA, or a target of heron's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron import peer
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import print_module
from heron.options import Options

EVALUATOR, XLA, SIMULATOR = "evaluator", "xla", "sim"
#: the name of the machine that `sim` stands for
_NAMES = {SIMULATOR: "sim:sm_90"}


def target_name(machine: str) -> str:
    """The target that a machine's name stands for."""
    return _NAMES.get(machine, machine)


def outputs(machine: str, module: Module, inputs: Sequence[np.ndarray], options: Options) -> list[np.ndarray]:
    """The outputs of a program, tuples flattened. Raises what the machine raises."""
    if machine == EVALUATOR:
        return evaluate(module, *inputs)
    if machine == XLA:
        return peer.run(print_module(module), *inputs)

    return compile(module, target_name(machine), options.replace(cache=False)).run(list(inputs))
