"""The way from text to buffers, and the proof that values survive it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.buffers import BufferAssignment, assign
from heron.buffers.check import prove, run_in_buffers
from heron.evaluator import evaluate, flatten
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.checks import difference, random_inputs
from heron.passes.framework.context import PassContext

COPIES = ("copy-insertion", "memory-scheduler")
TWO_ROUNDS = ("double-buffer-loop-unrolling", *COPIES)
FEW_COPIES = ("double-buffer-loop-unrolling", "copy-insertion", "copy-fusion", "memory-scheduler")
FUSED = ("layout-assignment", "instruction-fusion", "multi-output-fusion", "fusion-wrapper", "dce", *FEW_COPIES)


def run_passes(module: Module, names: Sequence[str] = COPIES) -> PassContext:
    ctx = PassContext()
    for name in names:
        ctx.run_pass(registry.get(name), module)
    verify(module)
    return ctx


def compiled(text: str, names: Sequence[str] = COPIES) -> tuple[Module, BufferAssignment, PassContext]:
    module = parse(text)
    ctx = run_passes(module, names)
    return module, assign(module), ctx


def assert_survives(
    text: str, names: Sequence[str] = COPIES, inputs: Sequence[np.ndarray] | None = None
) -> tuple[Module, BufferAssignment, PassContext]:
    """Compile `text`, run it inside its buffers and by the evaluator, compare; twice the same inputs give the same."""
    source = parse(text)
    arrays = list(inputs) if inputs is not None else random_inputs(source)
    module, assignment, ctx = compiled(text, names)
    prove(assignment)
    wanted = evaluate(source, *arrays)
    found = flatten(run_in_buffers(module, assignment, nested(source, arrays)))
    assert len(wanted) == len(found)
    for n, (old, new) in enumerate(zip(wanted, found, strict=True)):
        what = difference(old, new)
        assert what is None, f"output {n}: {what}\n{module}"
    return module, assignment, ctx


def nested(module: Module, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Flat arrays as a value for each parameter, tuples where it takes tuples."""
    flat = iter(arrays)

    def value(shape: Shape) -> Any:
        return next(flat) if shape.tuple_shapes is None else tuple(map(value, shape.tuple_shapes))

    return [value(p.shape) for p in module.entry.parameters]


def copies(module: Module) -> int:
    return sum(i.opcode == "copy" for i in module.instructions())


def kernels(module: Module) -> int:
    return sum(i.opcode == "fusion" for c in module.non_fusion_computations() for i in c.instructions)
