"""From a scheduled module with buffers to thunks and kernels.

Fusions become kernels (each distinct one emitted once), dots library products, control flow nested sequences. What has
no lowering is an error with a code: nothing is ever handed to the evaluator.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable
from dataclasses import field, replace
from functools import partial
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import IntegerAttr, i64

from heron.analysis.fusion.products import reads_large_matrix_once
from heron.analysis.fusion.row_blocks import row_blocks_of
from heron.analysis.fusion.sliced_product import is_sliced_product, place_of
from heron.analysis.values.trip_count import noted_trips
from heron.backends.block_copies import block_copies
from heron.backends.calls import RULES
from heron.backends.calls.collectives import (
    COLLECTIVES,
    NUMBERS,
    TRANSFERS,
    collective,
    device_number,
    ended,
    transfer,
)
from heron.backends.refusals import no_code
from heron.backends.row_blocks import row_blocks
from heron.buffers.assignment import Slice
from heron.codegen.emit import emit_kernels
from heron.codegen.ir.editing import argument_attributes, entry_of, set_argument_attributes
from heron.codegen.kernel import Kernel
from heron.hlo.calls.gemm_shape import gemm_shape
from heron.hlo.facts import having
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.fingerprint import fingerprint
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.ir.types import PRED
from heron.records import dataclass
from heron.runtime.thunks import (
    ConditionalThunk,
    CopyThunk,
    GemmThunk,
    KernelThunk,
    MovingSlice,
    RandomStateThunk,
    Sequence,
    Start,
    Thunk,
    WhileThunk,
)
from heron.trace import Decision

if TYPE_CHECKING:
    from heron.backends.machine import Machine
    from heron.buffers.assignment import BufferAssignment
    from heron.trace import Trace

#: ops that are only names for buffers other instructions fill
NO_CODE = having(Trait.GIVEN, Trait.TUPLE, Trait.FORWARDS) | {"after-all"}


@dataclass(slots=True)
class KernelUse:
    """A distinct kernel and the instructions that run it."""

    kernel: Kernel
    #: the instruction it was emitted for
    instruction: Instruction
    sources: list[str] = field(default_factory=list)
    #: processor time that emitting it took; kernels emitted together share
    emit_seconds: float = 0.0
    #: how often a call of the program launches it; infinity where nobody knows
    launches: float = 0.0
    #: estimated time by one thread of a CPU, once somebody has asked for it
    seconds: float | None = None


class LoweredProgram(NamedTuple):
    """A program as steps and the distinct kernels that they launch, by name, still MLIR."""

    thunks: Sequence
    kernels: dict[str, KernelUse]


class Lowering:
    """Lowers one scheduled module for one machine; `kernels` fills up on the way."""

    def __init__(self, module: Module, buffers: BufferAssignment, machine: Machine, trace: Trace) -> None:
        self.module, self.buffers, self.machine, self.trace = module, buffers, machine, trace
        self.target, self.options = machine.target, machine.options
        self.kernels: dict[str, KernelUse] = {}
        #: fusions by what they compute; those of equal keys differ in names alone
        self.alike: dict[Instruction, Hashable] = {}
        self._times = 1.0  # a call of the program does what is being lowered
        self._by_key: dict[object, tuple[str, ...]] = {}
        self._inside: dict[Instruction, Slice] = {}  # products and their operands inside of fusions
        self._rules: dict[str, Callable[[Instruction], list[Thunk]]] = {
            "fusion": self.fusion,
            "sort": self.sort,
            "topk": self.alone,
            "dot": self.dot,
            "copy": self.copy,
            "while": self.loop,
            "conditional": self.conditional,
            "call": self.call,
            "async-start": self.begun,
            "async-update": lambda _: [],
            "async-done": partial(ended, self),
            "rng-get-and-update-state": self.random_state,
            **dict.fromkeys(RULES, self.library_call),
            **{opcode: partial(collective, self) for opcode in COLLECTIVES},
            **{opcode: partial(transfer, self) for opcode in TRANSFERS},
            **{opcode: partial(device_number, self) for opcode in NUMBERS},
        }

    def program(self) -> LoweredProgram:
        """The whole program, from its entry computation on."""
        return LoweredProgram(self.sequence(self.module.entry), self.kernels)

    def sequence(self, computation: Computation) -> Sequence:
        """A computation's thunks, in schedule order."""
        assert self.module.schedule is not None
        thunks: list[Thunk] = []
        for i in self.module.schedule[computation]:
            if i.opcode in NO_CODE:
                continue
            rule = self._rules.get(i.opcode)
            if rule is None:
                raise no_code(i, self.target.name)
            sum_ = self.added_product(i, thunks)
            if sum_ is not None:
                thunks[-1] = sum_
            else:
                thunks.extend(rule(i))
        return tuple(thunks)

    # -- helpers -----------------------------------------------------------------------------------------------------
    def slice(self, i: Instruction, index: ShapeIndex = ()) -> Slice:
        return self._inside.get(i) or self.buffers.slice_of(i, index)

    def _leaves(self, i: Instruction) -> list[Slice]:
        return [self.slice(i, index) for index, leaf in i.shape.leaves() if leaf.is_array]

    def _kernel_name(self, i: Instruction) -> str:
        """A symbol that tells op and place: the instruction's name, cleaned and unique."""
        base = re.sub(r"\W", "_", i.name)
        name, n = base, 1
        while name in self.kernels:
            name, n = f"{base}_{n}", n + 1
        return name

    def run(
        self, i: Instruction, key: object, emit: Callable[[str], list[Kernel]], args: tuple[Slice, ...]
    ) -> list[Thunk]:
        """Thunks for the kernels of `key`, emitted the first time it comes with such overlaps of arguments."""
        key = (key, alias_pattern(args))
        names = self._by_key.get(key)
        if names is None:
            start, began = perf_counter(), process_time()
            name = self._kernel_name(i)
            self.trace.begin(f"kernel {name}")
            made = emit(name)
            spent = process_time() - began
            for kernel in made:
                self.kernels[kernel.name] = KernelUse(kernel, i, emit_seconds=spent / len(made))
                mark_aliases(kernel, taken(kernel, args))
                if kernel.decision is not None:
                    self.trace.decide(kernel.decision)
            names = self._by_key[key] = tuple(k.name for k in made)
            self.trace.stage_add("emit", perf_counter() - start)
            self.trace.span(name, "kernel", perf_counter() - start)
        thunks: list[Thunk] = []
        for name in names:
            use = self.kernels[name]
            use.sources.append(i.name)
            use.launches += self._times
            given = taken(use.kernel, args)
            # an in-place kernel finds its operand where it writes; elsewhere the operand is copied there first
            for n, arg in enumerate(use.kernel.args):
                if arg.alias is not None:
                    thunks.extend(copies(given[arg.alias], given[n], i.name))
            thunks.append(KernelThunk(name, given, i.name))
        return thunks

    def shared_kernel(self, i: Instruction, key: object, emit: Callable[[str], Kernel]) -> str:
        """The name of a kernel that code of the program calls; emitted the first time its key comes."""
        names = self._by_key.get(key)
        if names is None:
            began, name = process_time(), self._kernel_name(i)
            self.kernels[name] = KernelUse(emit(name), i, emit_seconds=process_time() - began, launches=math.inf)
            names = self._by_key[key] = (name,)
        self.kernels[names[0]].sources.append(i.name)
        return names[0]

    def alone(self, i: Instruction) -> list[Thunk]:
        """A kernel of our own for an instruction that is in no fusion."""
        args = (*(self.slice(o) for o in dict.fromkeys(i.operands)), *self._leaves(i))
        attributes = {k: fingerprint(v) if isinstance(v, Computation) else str(v) for k, v in i.attrs.items()}
        shapes = tuple(o.shape for o in (*i.operands, i))
        key = (i.op, str(attributes), shapes)
        return self.run(i, key, lambda name: emit_kernels(i, name, self.target), args)

    # -- rules -------------------------------------------------------------------------------------------------------
    def fusion(self, i: Instruction) -> list[Thunk]:
        cut = row_blocks_of(i)
        if cut is not None:
            return row_blocks(self, i, cut)
        if is_sliced_product(i):
            return self.sliced_product(i)
        copies = None if self.target.is_gpu else block_copies(self, i)
        if copies is not None:
            return copies
        args = (*(self.slice(o) for o in i.operands), *self._leaves(i))
        key = self.alike[i] = (fingerprint(i.calls), i.kind, i.extras.get("backend_config"))
        return self.run(i, key, lambda name: emit_kernels(i, name, self.target), args)

    def sort(self, i: Instruction) -> list[Thunk]:
        if self.target.is_gpu:
            return self.alone(i)
        from heron.backends.calls.sort import room  # for programs with sorts alone

        # on the CPU a sort finds its operands in the outputs
        outs = tuple(self._leaves(i))
        thunks: list[Thunk] = []
        for operand, out in zip(i.operands, outs, strict=True):
            thunks.extend(copies(self.slice(operand), out, i.name))
        key = ("sort", i.dimensions, tuple(o.shape for o in i.operands), fingerprint(i.to_apply))
        return thunks + self.run(i, key, lambda name: emit_kernels(i, name, self.target), (*outs, *room(self, i)))

    def dot(self, i: Instruction) -> list[Thunk]:
        lhs, rhs = i.operands[:2]
        t = lhs.shape.element_type
        if rhs.shape.element_type is not t or not self.machine.has_gemm(t, i.shape.element_type):
            if missing := self.machine.missing_gemm(t, i.shape.element_type):
                self.trace.note(f"no BLAS, products are kernels: {missing}")
            return self.alone(i)
        if not self.target.is_gpu and reads_large_matrix_once(i):
            return self.alone(i)
        return [self.product(i, self.slice(lhs), self.slice(rhs), self.slice(i))]

    def product(self, i: Instruction, lhs: Slice, rhs: Slice, out: Slice) -> GemmThunk:
        """The product of a dot whose operands and result are at those places."""
        g, t = gemm_shape(i), i.operands[0].shape.element_type
        flags = g.lhs_transposed, g.rhs_transposed
        return GemmThunk(lhs, rhs, out, g.batch, g.m, g.n, g.k, *flags, t, i.shape.element_type, i.name)

    def sliced_product(self, i: Instruction) -> list[Thunk]:
        """The product of a fusion that reads slices of its operands where they lie."""
        product = i.fused_root
        self._inside |= {o: self._part(i, o) for o in product.operands} | {product: self.slice(i)}
        return [replace(t, source=i.name) for t in self._rules[product.opcode](product)]

    def _part(self, i: Instruction, operand: Instruction) -> Slice:
        """The place of an operand of the product in `i`."""
        found, size = place_of(operand), operand.shape.byte_size
        whole = self.slice(i.operands[found.array.number])
        if not found.starts:
            return Slice(whole.allocation, whole.offset + found.offset, size)
        starts = [
            Start(self.slice(i.operands[s.scalar.number]), s.scalar.shape.element_type, s.last, s.bytes)
            for s in found.starts
        ]
        first, rest = whole.offset + found.offset, whole.size - found.offset
        return MovingSlice(whole.allocation, first, rest, size, tuple(starts))

    def added_product(self, i: Instruction, before: list[Thunk]) -> GemmThunk | None:
        """The product that was computed last as a sum in the place of `i`, where `i` adds it to what lies there."""
        if not before or not isinstance(before[-1], GemmThunk) or i.opcode != "fusion":
            return None
        product, root = before[-1], i.fused_root
        if root.opcode != "add" or len(i.operands) != 2 or set(root.operands) != set(i.calls.parameters):
            return None
        dot, other = i.operands if source_of(i.operands[0]).name == product.source else i.operands[::-1]
        made = source_of(dot)
        if made.name != product.source or len(made.users) != 1 or len(dot.users) != 1 or made.is_root:
            return None
        out = self.slice(i)
        if self.slice(other) != out or any(out.overlaps(s) for s in (product.lhs, product.rhs, product.out)):
            return None
        if not self.machine.adds_products(product):
            return None
        self.trace.decide(Decision(True, "added where the sum is", "product-sum", product.source, i.name))
        return replace(product, out=out, adds=True)

    def copy(self, i: Instruction) -> list[Thunk]:
        return [
            thunk
            for index, leaf in i.shape.leaves()
            if leaf.is_array
            for thunk in copies(self.slice(i.operands[0], index), self.slice(i, index), i.name)
        ]

    def library_call(self, i: Instruction) -> list[Thunk]:
        return RULES[i.opcode](self, i)

    def loop(self, i: Instruction) -> list[Thunk]:
        predicate = self.slice(i.condition.root)
        trips, before = noted_trips(i), self._times
        self._times *= math.inf if trips is None else trips + 1
        if trips is not None and self.machine.counts_loops:
            made = WhileThunk((), predicate, self.sequence(i.body), i.name, trips)
        else:
            made = WhileThunk(self.sequence(i.condition), predicate, self.sequence(i.body), i.name)
        self._times = before
        return [made]

    def conditional(self, i: Instruction) -> list[Thunk]:
        by_predicate = i.operands[0].shape.element_type is PRED
        branches = tuple(self.sequence(c) for c in i.called)
        return [ConditionalThunk(self.slice(i.operands[0]), by_predicate, branches, i.name)]

    def call(self, i: Instruction) -> list[Thunk]:
        return list(self.sequence(i.to_apply))

    def begun(self, i: Instruction) -> list[Thunk]:
        """A computation that the program begins early runs where it begins."""
        return list(self.sequence(i.called[0]))

    def random_state(self, i: Instruction) -> list[Thunk]:
        return [RandomStateThunk(self.slice(i), i.delta, i.name)]


def source_of(i: Instruction) -> Instruction:
    """The array behind a bitcast; `i` itself otherwise."""
    return i.operands[0] if i.opcode == "bitcast" else i


def copies(origin: Slice, target: Slice, source: str) -> list[Thunk]:
    """A copy unless both are the same place."""
    return [] if origin == target or target.size == 0 else [CopyThunk(origin, target, source)]


def taken(kernel: Kernel, args: tuple[Slice, ...]) -> tuple[Slice, ...]:
    """The arguments passed to one kernel of an instruction: all operands and outputs, or, for a later kernel, only the
    outputs that the previous one started to fill."""
    return args[len(args) - len(kernel.args) :]


def alias_pattern(args: tuple[Slice, ...]) -> tuple[int, ...]:
    """For each argument the first argument that overlaps it (itself when none does): part of a kernel's identity."""
    return tuple(next(n for n, other in enumerate(args) if other is s or other.overlaps(s)) for s in args)


def mark_aliases(kernel: Kernel, args: tuple[Slice, ...]) -> None:
    """Tell the transforms which outputs are computed in an input's place: the two pointers are one."""
    if kernel.emitter == "block":  # which Triton compiles
        return
    shared = {
        n: m
        for n, out in enumerate(kernel.args)
        if out.kind == "out"
        for m, given in enumerate(kernel.args)
        if given.kind == "in" and args[n] == args[m]
    }
    if not shared:
        return
    entry = entry_of(kernel.module, kernel.name)
    attributes = argument_attributes(entry)
    for n, m in shared.items():
        attributes[n]["xla_gpu.alias"] = IntegerAttr(m, i64)
    set_argument_attributes(entry, attributes)
