"""The way of a program through the compiler, one method a stage; every stage has a text.

module (→ sharded → partitioned) → hlo → fused → scheduled → buffers → thunks → mlir → llvm → asm | ptx → sass
→ Executable

`heron.compile` is the way in (`heron.compiling`); a `Compilation` is for those who want single stages.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from heron.backends.calls.collectives import refuse_absent
from heron.backends.devices import ONE, Devices
from heron.backends.lower import KernelUse, LoweredProgram, Lowering
from heron.backends.machine import no_stage
from heron.backends.stages import Stages
from heron.backends.watchdog import watched
from heron.buffers import assign
from heron.buffers.report import report
from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import parse as parse_sharding
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.shares import is_global
from heron.records import dataclass
from heron.runtime.collectives.spread import Array, Spread
from heron.runtime.dynamic_signature import DynamicSignature
from heron.runtime.executable import Executable, KernelInfo, ProgramInfo, Signature
from heron.runtime.thunks import KernelThunk, show, walk
from heron.targets import Target
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.backends.machine import Machine
    from heron.buffers.assignment import BufferAssignment
    from heron.codegen.llvm.code_cache import Key
    from heron.hlo.calls.size_checks import SizeCheck
    from heron.passes.framework.measured import Fragment
    from heron.passes.framework.pipeline import Pipeline

#: stages of programs for several devices alone, ahead of the others
DEVICE_STAGES = ("sharded", "partitioned")
_HLO_STAGES = (*DEVICE_STAGES, "hlo", "fused", "scheduled")
STAGES = (*_HLO_STAGES, "buffers", "thunks", "graph", "mlir", "llvm", "ptx", "sass", "asm")


@dataclass
class Compilation:
    """One compile of a verified module. Each stage is computed when first asked for, from the one before it.

    Kept are the scheduled module, its buffers, and the thunks with the kernels' launches. The module is one object that
    the pipelines change, and machine code uses up the MLIR of the kernels: `passes` and `text` compute such a stage
    again when it is asked for after a later one, from the nearest stage that is kept.

    Args:
        pipelines: the passes by the stage that they end, the last ``scheduled``; by default those of the target.
        asks: called with each part of the program that could be computed in several ways.
    """

    source: Module
    target: Target
    options: Options
    trace: Trace
    pipelines: Mapping[str, Pipeline] | None = None
    asks: Callable[[Fragment], None] | None = None
    machine: Machine = field(init=False)
    #: scheduled fusions by what they compute, as far as lowering has compared them; those of equal keys differ in names
    alike: Mapping[Instruction, Hashable] = field(init=False, default_factory=dict)
    _run: PipelineRun | None = field(init=False, default=None)
    _is_used_up: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.machine = machine_for(self.target, self.options, Devices.of(self.source))

    # -- stages ------------------------------------------------------------------------------------------------------
    def passes(self, until: str = "scheduled") -> Module:
        """The module after the pipelines up to a stage. A later stage changes the same object.

        Stages are hlo, fused and scheduled, before them sharded and partitioned for a program on global arrays.

        A stage before one that was asked for already is computed again, from the source; the trace has the first run.
        """
        run = self._run
        if run is None:
            run = self._run = PipelineRun(self, self.trace)
        elif run.is_past(until):
            run = PipelineRun(self, Trace())
        return run.to(until)

    @cached_property
    def scheduled(self) -> Module:
        return self.passes("scheduled")

    @cached_property
    def buffers(self) -> BufferAssignment:
        module = self.scheduled
        with self.trace.stage("buffers"):
            m = self.machine
            return assign(module, alignment=m.alignment, scratch_bytes=m.scratch_bytes, scratch_over=m.scratch_over)

    @cached_property
    def lowered(self) -> LoweredProgram:
        """Thunks and distinct kernels. Their MLIR is gone once machine code is made: see `take_lowered`."""
        return self._lower(self.trace)

    def take_lowered(self) -> LoweredProgram:
        """The lowered program for a caller that uses up the MLIR of its kernels; lowered again each further time."""
        if self._is_used_up:
            return self._lower(Trace())
        self._is_used_up = True
        return self.lowered

    def _lower(self, trace: Trace) -> LoweredProgram:
        refuse_absent(self.source)
        buffers = self.buffers
        with trace.stage("emit"):
            lowering = Lowering(self.scheduled, buffers, self.machine, trace)
            lowered, self.alike = lowering.program(), lowering.alike
            self.machine.admit(lowered.kernels)
            self.machine.share_out(lowered.kernels, trace)
            return lowered

    @cached_property
    def signature(self) -> Signature:
        seen, made = _signature(self.source), _signature(self.scheduled)
        assert self._run is not None
        checks = self._run.size_checks
        is_dynamic = any(s.dynamic for shape in (*seen.parameters, seen.result) for _, s in shape.leaves())
        if not is_dynamic and not checks:
            return Signature(made.parameters, seen.names, made.result)
        return DynamicSignature(made.parameters, made.names, made.result, seen, checks)

    @property
    def spread(self) -> Spread:
        """The devices, and how the arrays that callers see are spread over them."""
        devices = Devices.of(self.source)
        if devices.count == 1:
            return Spread()
        seen, made = _signature(self.source), self.scheduled
        texts = made.spmd_parameter_shardings or ("",) * len(seen.parameters)
        arguments = [a for shape, text in zip(seen.parameters, texts, strict=True) for a in _arrays(shape, text)]
        outputs = _arrays(seen.result, made.spmd_output_sharding or "")
        return Spread(devices.replicas, devices.partitions, tuple(arguments), tuple(outputs))

    def code_keys(self) -> list[tuple[str, Key]]:
        """The modules that LLVM compiles, each with the key of its code in a cache."""
        return self.machine.code_keys(self.take_lowered(), self.source.name)

    def executable(self) -> Executable:
        """The program, ready to call. Raises TGT009 when it takes longer than ``Options.compile_timeout``."""
        return watched(self._executable, self.options.compile_timeout, self.late)

    def late(self) -> HeronError:
        """The error for a compile that takes too long, with the step it has reached."""
        return HeronError(
            "TGT009",
            f"compiling '{self.source.name}' for {self.target.name} takes longer than {self.options.compile_timeout} s",
            where=self.trace.at,
            why="the option compile_timeout, --timeout or HERON_COMPILE_TIMEOUT sets the limit",
            hint="a higher limit; -O opt_level=1 if LLVM takes the time; heron compile --to hlo stops before LLVM",
        )

    def _executable(self) -> Executable:
        lowered, trace = self.take_lowered(), self.trace
        kernels = [info(use, self.machine.threads) for use in lowered.kernels.values()]
        for k in kernels:
            trace.kernel(
                name=k.name,
                emitter=k.emitter,
                source=list(k.instructions),
                launch={"grid": k.grid, "block": k.block, "work_items": k.work_items},
            )
        for t in walk(lowered.thunks):
            if not isinstance(t, KernelThunk):
                trace.count_thunk(t.kind)
        spread = self.spread
        if spread.devices > 1:
            trace.note(f"the program is for {spread.devices} devices; memory and threads are those of each")
        stages = Stages(lambda: self)
        facts = ProgramInfo(
            self.source.name, self.target.name, self.signature, kernels, self.buffers, trace, stages, self.spread
        )
        return self.machine.build(lowered, facts)

    # -- texts -------------------------------------------------------------------------------------------------------
    def text(self, stage: str) -> str:
        """The program at a stage. Raises TGT002 for a name that is no stage, TGT003 for one of other targets."""
        if stage not in STAGES:
            raise HeronError("TGT002", f"unknown stage '{stage}'", hint="one of " + ", ".join(STAGES))
        if stage in _HLO_STAGES:
            return str(self.scheduled if stage == "scheduled" else self.passes(stage))
        if stage == "buffers":
            return report(self.buffers, values=True)
        if stage == "thunks":
            return show(self.lowered.thunks)
        if stage == "graph":
            return self.machine.graph(self.lowered)
        return self.machine.text(stage, self.take_lowered())

    def cubin(self) -> bytes:
        """Machine code of all kernels, for an NVIDIA GPU. Raises TGT003 on other targets, LLVM024 with no assembler."""
        return self.machine.cubin(self.take_lowered().kernels)

    def mlir(self, kernel: str | None = None, steps: bool = False) -> str:
        """MLIR of all kernels or the one of that name, as emitted, or after every transform (``steps``).

        Raises TGT007 for a name that no kernel has.
        """
        lowered = self.take_lowered()
        if kernel is not None:
            lowered = LoweredProgram(lowered.thunks, {kernel: _kernel(lowered.kernels, kernel)})
        return self.machine.steps_text(lowered.kernels) if steps else self.machine.text("mlir", lowered)


class PipelineRun:
    """A copy of a program on its way through the pipelines."""

    def __init__(self, compilation: Compilation, trace: Trace) -> None:
        self._module = compilation.source.clone()
        #: conditions on sizes that the program checks when it runs
        self.size_checks: tuple[SizeCheck, ...] = ()
        c = self._context = PassContext(options=compilation.options, trace=trace, target=compilation.target)
        c.asks = compilation.asks
        c.on_changed = trace.on_program
        if trace.on_program is not None:
            trace.on_program("", self._module)
        # sizes that callers give would be parameters without a sharding: the partitioner refuses such programs
        if is_dynamic(self._module.instructions()) and not (
            is_global(self._module) and is_dynamic([*self._module.entry.parameters, self._module.entry.root])
        ):
            self._fix_sizes()
        pipelines = compilation.pipelines or compilation.machine.pipelines()
        #: the pipelines to come, by the stage that each one ends
        self._rest = {**_device_pipelines(), **pipelines} if is_global(self._module) else dict(pipelines)
        self._stage = ""

    def is_past(self, stage: str) -> bool:
        """Whether the module has gone beyond a stage."""
        return stage != self._stage and stage not in self._rest

    def to(self, stage: str) -> Module:
        """The module at a stage. Raises TGT003 where no pipeline ends it."""
        if self.is_past(stage):
            raise no_stage(self._context.target, stage) if stage not in DEVICE_STAGES else self._not_global(stage)
        while self._stage != stage:
            self._stage = next(iter(self._rest))
            with self._context.trace.stage(self._stage):
                self._rest.pop(self._stage).run(self._module, self._context)
        if not self._rest:
            self._context = PassContext(target=self._context.target)  # the records of the passes are not kept
        return self._module

    def _not_global(self, stage: str) -> HeronError:
        m = self._module
        return HeronError(
            "TGT003",
            f"'{m.name}' has no stage '{stage}'",
            why=f"num_partitions={m.num_partitions}, and "
            + ("it is partitioned already" if m.num_partitions > 1 else "it is for one device"),
            hint="programs on global arrays with shardings have it, if the header says num_partitions=N",
        )

    def _fix_sizes(self) -> None:
        """Pad the program and make sizes numbers; its passes are checked by themselves, for its inputs change here."""
        from heron.passes.dynamic.fixed_sizes import fixed_sizes
        from heron.passes.dynamic.model.interface import fix_interface

        c = self._context
        with c.trace.stage("sizes"):
            fixed_sizes().run(self._module, PassContext(options=c.options, trace=c.trace, target=c.target))
            self.size_checks = tuple(fix_interface(self._module))


def is_dynamic(values: Iterable[Instruction]) -> bool:
    """Whether any of the values has a dynamic dimension."""
    return any(s.dynamic for i in values for _, s in i.shape.leaves())


def _device_pipelines() -> dict[str, Pipeline]:
    """The pipelines of programs for several devices. Their hundred modules are loaded for such programs alone."""
    from heron.passes.devices import device_pipelines

    return device_pipelines()


def _signature(module: Module) -> Signature:
    parameters = module.entry.parameters
    return Signature(tuple(p.shape for p in parameters), tuple(p.name for p in parameters), module.entry.root.shape)


def _arrays(shape: Shape, sharding: str) -> list[Array]:
    """The arrays of a value that callers see, each with its own part of the sharding."""
    whole = parse_sharding(sharding) if sharding else None
    return [
        Array(leaf, str(whole.for_leaf(shape, index)) if whole is not None else "")
        for index, leaf in shape.leaves()
        if leaf.is_array
    ]


def _kernel(kernels: Mapping[str, KernelUse], name: str) -> KernelUse:
    """The kernel of that name. Raises TGT007."""
    if name not in kernels:
        near = difflib.get_close_matches(name, kernels, 1)
        hint = f"did you mean '{near[0]}'?" if near else "kernels are " + (", ".join(kernels) or "none")
        raise HeronError("TGT007", f"the program has no kernel '{name}'", hint=hint)
    return kernels[name]


def info(use: KernelUse, threads: int) -> KernelInfo:
    """The facts of a kernel that up to ``threads`` threads of a CPU share."""
    k = use.kernel
    portions = min(threads, -(-k.launch.work_items // k.launch.grain)) if k.launch.grain else 1
    return KernelInfo(
        k.name,
        k.emitter,
        len(use.sources),
        tuple(use.sources),
        k.launch.grid,
        k.launch.block,
        k.launch.work_items,
        k.launch.shared_bytes,
        k.launch.heap_bytes * portions,
        k.notes,
    )


def machine_for(target: Target, options: Options, devices: Devices = ONE) -> Machine:
    """The machine of a target, for programs on that many devices. Each kind of machine is loaded when a program is
    compiled for it.
    """
    if not target.is_gpu:
        from heron.backends.cpu.machine import CpuMachine

        return CpuMachine(target, options, devices)
    if target.sim:
        from heron.backends.gpu.simulated import SimMachine

        return SimMachine(target, options, devices)
    from heron.backends.gpu.machine import GpuMachine

    return GpuMachine(target, options, devices)
