"""The way of a program through the compiler, one method a stage; every stage has a text.

module → hlo → fused → scheduled → buffers → thunks → mlir → llvm → asm | ptx → sass → Executable
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from heron.backends.collector import collector_paused
from heron.backends.devices import need_one
from heron.backends.lower import KernelUse, Lowering
from heron.backends.watchdog import watched
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.runtime.executable import Executable, KernelInfo, Signature
from heron.runtime.thunks import KernelThunk, Sequence, kind_of, show, walk
from heron.targets import Target
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.backends.machine import Machine
    from heron.buffers.assignment import BufferAssignment
    from heron.codegen.llvm.code_cache import Key
    from heron.hlo.calls.size_checks import SizeCheck
    from heron.passes.framework.measured import Fragment

STAGES = ("hlo", "fused", "scheduled", "buffers", "thunks", "graph", "mlir", "llvm", "ptx", "sass", "asm")


@dataclass
class Compilation:
    """One compile. Each stage is computed when first asked for, from the one before it."""

    source: Module
    target: Target
    options: Options
    trace: Trace
    machine: Machine = field(init=False)
    #: conditions on sizes that the program looks at when it runs
    size_checks: tuple[SizeCheck, ...] = field(init=False, default=())
    #: told of what could be done in several ways (`heron.passes.framework.measured`)
    asks: Callable[[Fragment], None] | None = None

    def __post_init__(self) -> None:
        from heron.backends.machine import machine_for

        self.machine = machine_for(self.target, self.options)

    # -- stages ------------------------------------------------------------------------------------------------------
    def passes(self, until: str = "scheduled") -> Module:
        """The module after the pass pipelines up to a stage: hlo, fused or scheduled."""
        from heron.passes.framework.context import PassContext

        module = self.source.clone()
        if any(s.dynamic for i in module.instructions() for _, s in i.shape.leaves()):
            self._fix_sizes(module)
        ctx = PassContext(options=self.options, trace=self.trace, target=self.target)
        ctx.asks = self.asks
        for stage, pipeline in self.machine.pipelines().items():
            with self.trace.stage(stage):
                pipeline.run(module, ctx)
            if stage == until:
                break
        return module

    def _fix_sizes(self, module: Module) -> None:
        """Pad the program and make sizes numbers; its passes are checked by themselves, for its inputs change here."""
        from heron.passes.dynamic.model.interface import fix_interface
        from heron.passes.framework.context import PassContext
        from heron.passes.pipelines import fixed_sizes

        with self.trace.stage("sizes"):
            fixed_sizes().run(module, PassContext(options=self.options, trace=self.trace, target=self.target))
            self.size_checks = tuple(fix_interface(module))

    @cached_property
    def scheduled(self) -> Module:
        return self.passes("scheduled")

    @cached_property
    def buffers(self) -> BufferAssignment:
        from heron.buffers import assign

        module = self.scheduled
        with self.trace.stage("buffers"):
            m = self.machine
            return assign(module, alignment=m.alignment, scratch_bytes=m.scratch_bytes)

    @cached_property
    def lowered(self) -> tuple[Sequence, dict[str, KernelUse]]:
        """Thunks and distinct kernels, still MLIR before lowering."""
        need_one(self.scheduled, self.target.name)
        buffers = self.buffers
        with self.trace.stage("emit"):
            machine, threads = self.machine, self.machine.threads(self.options)
            lowering = Lowering(
                self.scheduled,
                buffers,
                self.target,
                self.trace,
                machine.has_gemm,
                threads,
                counts_loops=machine.counts_loops,
                options=self.options,
                adds=machine.adds_products,
            )
            program = lowering.program()
            self.machine.admit(lowering.kernels)
            self.machine.share_out(lowering.kernels, self.options, self.trace)
            return program, lowering.kernels

    @cached_property
    def signature(self) -> Signature:
        seen, made = _signature(self.source), _signature(self.scheduled)
        is_dynamic = any(s.dynamic for shape in (*seen.parameters, seen.result) for _, s in shape.leaves())
        if not is_dynamic and not self.size_checks:
            return Signature(made.parameters, seen.names, made.result)
        from heron.runtime.dynamic_signature import DynamicSignature

        return DynamicSignature(made.parameters, made.names, made.result, seen, self.size_checks)

    def code_keys(self) -> list[tuple[str, Key]]:
        """The modules LLVM compiles, each with what a cache files its code under."""
        thunks, uses = self.lowered
        return self.machine.code_keys(thunks, uses, self.source.name)

    def executable(self) -> Executable:
        """The program, ready to call. Raises TGT009 when it takes longer than ``Options.compile_timeout``."""
        return watched(self._executable, self.options.compile_timeout, self.late)

    def late(self) -> HeronError:
        """The error for a compile that takes too long, with what it is at."""
        return HeronError(
            "TGT009",
            f"compiling '{self.source.name}' for {self.target.name} takes longer than {self.options.compile_timeout} s",
            where=self.trace.at,
            why="the option compile_timeout, --timeout or HERON_COMPILE_TIMEOUT sets the limit",
            hint="a higher limit; -O opt_level=1, if LLVM is what takes so long; heron compile --to hlo ends before it",
        )

    def _executable(self) -> Executable:
        thunks, uses = self.lowered
        threads = self.machine.threads(self.options)
        kernels = [info(use, threads) for use in uses.values()]
        facts: dict[str, Any] = dict(
            name=self.source.name,
            target=self.target.name,
            signature=self.signature,
            kernels=kernels,
            assignment=self.buffers,
            trace=self.trace,
            stages=Stages(self.source, self.target, self.options, self),
        )
        for k in kernels:
            self.trace.kernel(
                name=k.name,
                emitter=k.emitter,
                source=list(k.instructions),
                launch={"grid": k.grid, "block": k.block, "work_items": k.work_items},
            )
        for t in walk(thunks):
            if not isinstance(t, KernelThunk):
                self.trace.count_thunk(kind_of(t))
        return self.machine.build(thunks, uses, self.buffers, self.signature, self.options, self.trace, facts)


def _signature(module: Module) -> Signature:
    parameters = module.entry.parameters
    return Signature(tuple(p.shape for p in parameters), tuple(p.name for p in parameters), module.entry.root.shape)


def info(use: KernelUse, threads: int) -> KernelInfo:
    """What is worth telling of a kernel that up to so many threads of a CPU share."""
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


class Stages:
    """The text of each stage, made when asked for: early ones by compiling again, so that nothing is kept for it."""

    def __init__(self, source: Module, target: Target, options: Options, done: Compilation) -> None:
        self.source, self.target, self.options, self.done = source, target, options, done

    def text(self, name: str) -> str:
        """The program at stage `name`. Raises TGT002 for a name that is no stage of the target."""
        if name not in STAGES:
            raise HeronError("TGT002", f"unknown stage '{name}'", hint="one of " + ", ".join(STAGES))
        c = self.done
        if name in ("hlo", "fused"):
            fresh = Compilation(self.source, self.target, self.options, Trace())
            return str(fresh.passes(name))
        if name == "scheduled":
            return str(c.scheduled)
        if name == "buffers":
            return c.buffers.report(values=True)
        if name == "thunks":
            return show(c.lowered[0])
        if name == "graph":
            return c.machine.graph(*c.lowered)
        fresh = Compilation(self.source, self.target, self.options, Trace())
        thunks, uses = fresh.lowered
        return fresh.machine.text(name, thunks, uses)

    def cubin(self) -> bytes:
        """Machine code of all kernels, for an NVIDIA GPU. Raises TGT003 on other targets, LLVM024 with no assembler."""
        fresh = Compilation(self.source, self.target, self.options, Trace())
        return fresh.machine.cubin(fresh.lowered[1])

    def mlir(self, kernel: str | None = None, steps: bool = False) -> str:
        """MLIR of all kernels or the one of that name, as emitted, or after every transform (``steps``).

        Raises TGT007 for a name that no kernel has.
        """
        fresh = Compilation(self.source, self.target, self.options, Trace())
        thunks, uses = fresh.lowered
        if kernel is not None:
            if kernel not in uses:
                near = difflib.get_close_matches(kernel, uses, 1)
                hint = f"did you mean '{near[0]}'?" if near else "kernels are " + (", ".join(uses) or "none")
                raise HeronError("TGT007", f"the program has no kernel '{kernel}'", hint=hint)
            uses = {kernel: uses[kernel]}
        return fresh.machine.steps_text(uses) if steps else fresh.machine.text("mlir", thunks, uses)


def compile(
    module: Module,
    target: str | Target = "cpu",
    options: Options | None = None,
    trace: Trace | None = None,
) -> Executable:
    """Compile a module for a target.

    Args:
        module: a verified program; it is not changed.
        target: a name (`cpu`, `sm_90`, `sim:sm_90`, …; `heron targets` lists them) or a `Target`.
        options: defaults and `HERON_*` variables when None.
        trace: the record to write into; a fresh one when None (found at `executable.trace`).

    Raises HeronError with a code of the stage that refused, or of the rule an unverified program breaks.
    """
    from heron import targets
    from heron.hlo.verifier import blaming

    if not isinstance(target, Target):
        target = targets.get(target)
    options = options or Options.from_env()
    trace = trace if trace is not None else Trace()
    with collector_paused():
        with blaming(module):
            return Compilation(module, target, options, trace).executable()
