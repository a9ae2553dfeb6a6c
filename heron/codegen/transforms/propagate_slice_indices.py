"""Attaches the slice of memory to a private function's tensor argument where all calls agree.

A kernel knows which of its arguments share memory (`xla_gpu.alias`) and that the others do not; a function it calls
knows nothing. The step gives every tensor argument of the kernel the number of its slice, and the same to the arguments
it is passed to. `lower-tensors` then tells LLVM what it tells it of the kernel's: that different slices do not overlap,
how large and aligned they are, and that those nobody writes never change.

    func.func @k(%in: tensor<8xf32>, %out: tensor<8xf32>) … attributes {xla_gpu.entry} { %v = func.call @f(%in, %i) … }
    func.func private @f(%t: tensor<8xf32>, %i: index) -> f32 { … }
    ->
    func.func @k(%in: tensor<8xf32> {xla_gpu.slice_index = 0, xla_gpu.invariant}, %out: … {xla_gpu.slice_index = 1}) …
    func.func private @f(%t: tensor<8xf32> {xla_gpu.slice_index = 0, xla_gpu.invariant}, %i: index) -> f32 { … }

No pipeline has it: of the workloads' kernels only those of `threefry` have functions left, large ones with several
callers, and LLVM inlines them too, so that the same PTX comes out. It is for kernel text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, TensorType, UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from heron.codegen.ir.builder import int_attr
from heron.codegen.ir.editing import argument_attributes, function_table, set_argument_attributes
from heron.codegen.ir.types import I64
from heron.codegen.transforms.inliner import callee_of, callees_first, calls_of
from heron.codegen.transforms.options import TransformOptions

SLICE = "xla_gpu.slice_index"
INVARIANT = "xla_gpu.invariant"


class Slice(NamedTuple):
    """A part of memory: its number, and whether the kernel never writes to it."""

    index: int
    invariant: bool


def run(module: ModuleOp, options: TransformOptions) -> None:
    """Says of every tensor argument which slice it is; kernels that call no function stay as they are."""
    table = {name: f for name, f in function_table(module).items() if f.body.blocks}
    calls = {name: [op for op in calls_of(f) if callee_of(op) in table] for name, f in table.items()}
    given: dict[str, list[Slice | None]] = {}  # to each function's arguments, by the calls so far
    for name in reversed(callees_first(table, calls)):
        function = table[name]
        if "xla_gpu.entry" in function.attributes and calls[name]:
            given[name] = _of_entry(function)
        if name not in given:
            continue
        _write(function, given[name])
        known: dict[SSAValue, Slice | None] = dict(zip(function.body.block.args, given[name], strict=True))
        for op in calls[name]:
            passed = [known.get(v) for v in op.operands]
            before = given.setdefault(callee_of(op), passed)
            given[callee_of(op)] = [a if a == b else None for a, b in zip(before, passed, strict=True)]


def _of_entry(function: FuncOp) -> list[Slice | None]:
    """The slices of a kernel's arguments: its outputs, the last ones, may share those of others."""
    arguments = function.body.block.args
    tensors = [a.index for a in arguments if isinstance(a.type, TensorType)]
    outputs = sum(isinstance(t, TensorType) for t in function.function_type.outputs)
    facts = argument_attributes(function)
    slices = {n: n for n in tensors}
    for n in tensors[len(tensors) - outputs :]:
        alias = facts[n].get("xla_gpu.alias")
        slices[n] = alias.value.data if isinstance(alias, IntegerAttr) else n
    written = {slices[n] for n in tensors[len(tensors) - outputs :]}
    return [Slice(slices[n], slices[n] not in written) if n in slices else None for n in range(len(arguments))]


def _write(function: FuncOp, slices: Sequence[Slice | None]) -> None:
    attributes = argument_attributes(function)
    for facts, found in zip(attributes, slices, strict=True):
        if found is not None:
            facts[SLICE] = int_attr(found.index, I64)
            if found.invariant:
                facts[INVARIANT] = UnitAttr()
    set_argument_attributes(function, attributes)
