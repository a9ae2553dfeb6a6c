"""A fusion as a kernel computes it: a computation without calls, its inputs, and its flat outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from heron.analysis.blocks.config import BlockConfig, config_of
from heron.hlo.facts import is_call
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Output:
    """One flat output: the instruction that computes it, and which part of that when it is tuple-shaped."""

    instruction: Instruction
    part: int | None
    shape: Shape

    def of(self, value: Any) -> Any:
        """This output out of the instruction's value."""
        return value if self.part is None else value[self.part]


@dataclass(frozen=True, slots=True)
class Fusion:
    """A computation to make one kernel of. ``inputs`` are its parameters in order.

    ``parts`` (CPU only): split the outputs, in memory order, into this many equal parts; each part is a consecutive
    range of work items. 0 leaves the split to the emitter.
    """

    computation: Computation
    inputs: tuple[Instruction, ...]
    outputs: tuple[Output, ...]
    #: how it is cut into tiles, when it is a block-level fusion
    blocks: BlockConfig | None = None
    parts: int = 0

    @property
    def roots(self) -> list[Instruction]:
        """The instructions of the outputs, each once."""
        return list(dict.fromkeys(o.instruction for o in self.outputs))


def as_fusion(i: Instruction) -> Fusion:
    """A fusion instruction's computation; any other instruction alone, its operands as parameters.

    Calls inside are made in line in a copy. Raises GEN001 when something in it cannot be emitted.
    """
    computation = i.calls if i.opcode == "fusion" else _alone(i)
    if any(is_call(inner) for inner in computation.instructions):
        computation = _inlined(computation)
    return replace(fusion_of(computation), blocks=config_of(i))


def fusion_of(computation: Computation) -> Fusion:
    """The fusion of a computation without calls; a tuple root gives one output a leaf."""
    return Fusion(computation, tuple(computation.parameters), tuple(outputs_of(computation.root)))


def outputs_of(root: Instruction) -> list[Output]:
    """The flat outputs of a root."""
    if root.opcode == "tuple":
        return [o for operand in root.operands for o in outputs_of(operand)]
    if root.shape.tuple_shapes is not None:
        return [Output(root, n, s) for n, s in enumerate(root.shape.tuple_shapes)]
    return [Output(root, None, root.shape)]


def _alone(i: Instruction) -> Computation:
    computation = Computation(i.name)
    parameters: dict[Instruction, Instruction] = {}
    for operand in i.operands:
        if operand not in parameters:
            parameters[operand] = computation.add_parameter(len(parameters), operand.shape)
    computation.root = computation.attach(i.clone([parameters[o] for o in i.operands]))
    return computation


def _inlined(computation: Computation) -> Computation:
    """A copy with calls and nested fusions in line."""
    copy = Computation(computation.name)

    def add(c: Computation, arguments: Sequence[Instruction] | None) -> Instruction:
        done: dict[Instruction, Instruction] = {}
        for i in c.post_order():
            operands = [done[o] for o in i.operands]
            if i.opcode == "parameter" and arguments is not None:
                done[i] = arguments[i.number]
            elif is_call(i):
                done[i] = add(i.called[0], operands)
            elif i.opcode == "get-tuple-element" and operands[0].opcode == "tuple":
                done[i] = operands[0].operands[i.index]
            else:
                done[i] = copy.attach(i.clone(operands))
        return done[c.root]

    copy.root = add(computation, None)
    return copy


def is_pointwise(i: Instruction) -> bool:
    """Whether each element is computed from the operands' elements in its place."""
    return i.op.is_elementwise or i.opcode == "map"


def row_major(fusion: Fusion) -> bool:
    """Whether all inputs and outputs lie in memory as their dimensions are written."""
    shapes = [*(p.shape for p in fusion.inputs), *(o.shape for o in fusion.outputs)]
    return all(s.layout is None or s.layout.is_default for s in shapes)
