"""CPU programs: all kernels and the thunk sequence in one LLVM module, compiled for this machine."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING

from heron.backends import row_blocks
from heron.backends.cpu import parallel, pipeline, quick_code
from heron.backends.cpu.compilers import Compilers, Countdown
from heron.backends.cpu.portions import Portion, portions
from heron.backends.lower import KernelUse, LoweredProgram
from heron.backends.machine import Machine, lowered_text, no_stage
from heron.buffers.assign import ALIGNMENT
from heron.codegen.kernel import Kernel
from heron.codegen.llvm.code_cache import cache_decision
from heron.codegen.llvm.inline.called import Calls
from heron.codegen.llvm.inline.called import compiled as compiled_function
from heron.codegen.llvm.inline.called import compiler as function_compiler
from heron.codegen.llvm.inline.called import text as function_text
from heron.codegen.llvm.jit import Jit, host
from heron.codegen.llvm.translate import KernelAbi, to_llvm
from heron.codegen.native import helpers  # noqa: F401  what runtime asks for
from heron.codegen.native.program import ENTRY, ProgramWriter, is_whole
from heron.collector import collect_meanwhile
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType
from heron.runtime.collectives.team import Program as DeviceProgram
from heron.runtime.cpu import blas
from heron.runtime.cpu.devices import CpuDevices, DeviceHostCalls
from heron.runtime.cpu.executable import CpuExecutable, HostCalls
from heron.runtime.cpu.pool import Pool, pool, supported, thread_count
from heron.runtime.cpu.profile import Profile
from heron.runtime.executable import Executable, ProgramInfo
from heron.runtime.thunks import GemmThunk, HostThunk

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from heron.codegen.llvm.code_cache import Key
    from heron.codegen.llvm.declarations import Declarations
    from heron.codegen.transforms.options import TransformOptions
    from heron.passes.framework.pipeline import Pipeline
    from heron.runtime.object_code import Object
    from heron.trace import Trace

#: seconds of work below which a kernel calls the inline library: to copy from it takes longer than it would ever save
_LITTLE = 20e-6
#: the same of a kernel's own functions, in a call of the program: calls of them are not taken several at a time
_RARE = 1e-6
#: kernels of a module that are named where it takes long
_SHOWN = 4


class CpuMachine(Machine):
    """This machine's processor."""

    kind = "cpu"
    alignment = ALIGNMENT["cpu"]

    @cached_property
    def library(self) -> set[str]:
        """Functions of the inline library that the kernels written so far call."""
        return set()

    def scratch_over(self, i: Instruction) -> Instruction | None:
        return i.operands[0] if i.opcode == "fft" else None  # each line is read before it is written

    def scratch_bytes(self, i: Instruction) -> int:
        if i.opcode == "fft":
            from heron.backends.calls.fft import scratch_bytes

            return scratch_bytes(i)
        if i.opcode == "sort":
            from heron.backends.calls.sort import scratch_bytes

            return scratch_bytes(i)
        return row_blocks.scratch_bytes(i, self.threads)

    def pipelines(self) -> dict[str, Pipeline]:
        return dict(_pipelines())

    def has_gemm(self, operands: ElementType, result: ElementType) -> bool:
        from heron.codegen.native import gemm  # a dozen files, for programs with products alone

        return gemm.multiplies(operands, result)

    def transform_options(self, uses: dict[str, KernelUse]) -> TransformOptions:
        known, width = host(), host().width
        vector_bits = 0 if Calls(width).has_masks else width
        return replace(super().transform_options(uses), vector_bits=vector_bits, gathers=known.gathers)

    def missing_gemm(self, operands: ElementType, result: ElementType) -> str:
        return "" if operands is not result or operands not in blas.PREFIX else blas.why_not()

    def adds_products(self, product: GemmThunk) -> bool:
        from heron.codegen.native import float_gemm

        return float_gemm.adds(product)

    @property
    def threads(self) -> int:
        return max(1, thread_count(self.options.threads) // self.devices.count)

    @cached_property
    def pool(self) -> Pool | None:
        """The threads of the program, or as many as each of its devices has; None: one thread."""
        return pool(self.options.threads if self.devices.count == 1 else self.threads)

    def share_out(self, uses: dict[str, KernelUse], trace: Trace) -> None:
        if self.pool is not None:
            parallel.assign(uses.values(), trace)
        elif not supported():
            trace.note("one thread: the thread pool needs Linux on x86-64 or AArch64")

    def writer(
        self, uses: dict[str, KernelUse], host_address: Callable[[HostThunk], int], elsewhere: Collection[str] = ()
    ) -> ProgramWriter:
        """The writer of the program around the kernels; kernels `elsewhere` are in other modules."""
        kernels = {name: use.kernel for name, use in uses.items()}
        profile = Profile() if self.options.profile else None
        flush = self.options.denormals == "flush"
        return ProgramWriter(
            kernels, host_address, self.pool, elsewhere, profile, devices=self.devices.count, flush=flush
        )

    def kernels_llvm(self, uses: dict[str, KernelUse], declared: Declarations | None = None) -> str:
        """LLVM text of all kernels. With `declared`, which gets their declarations, their callers are beside them."""
        return self._translated(self.lower(uses), uses, declared)

    def _translated(
        self,
        module: ModuleOp,
        uses: dict[str, KernelUse],
        declared: Declarations | None = None,
        lines: list[Operation | None] | None = None,
    ) -> str:
        kernels = {name: self._abi(use.kernel, alone=declared is None) for name, use in uses.items()}
        seconds = {name: parallel.seconds_of(use) for name, use in uses.items()}
        small = [name for name, cost in seconds.items() if cost < _LITTLE]
        rare = [name for name in small if seconds[name] * uses[name].launches < _RARE]
        calls = Calls(host().width, small, rare)
        text = to_llvm(module, kernels=kernels, target=self.kind, declared=declared, calls=calls, lines=lines)
        self.library |= calls.names
        return text

    def translated(self, module: ModuleOp, uses: dict[str, KernelUse], lines: list[Operation | None]) -> str:
        return self._translated(module, uses, lines=lines)

    def _abi(self, kernel: Kernel, alone: bool) -> KernelAbi:
        """The calling convention of a kernel, which is called `alone`: from another module."""
        whole = is_whole(kernel, self.pool)
        step = 1 if whole else parallel.step(kernel)
        return KernelAbi(self.kind, internal=not alone, items=_items(kernel), step=step, is_whole=whole)

    def code_text(self, llvm: str) -> tuple[str, str]:
        return "asm", Jit(level=self.options.opt_level).asm(llvm)

    def _whole_llvm(self, uses: dict[str, KernelUse], writer: ProgramWriter, program: str) -> str:
        """LLVM text of the module of the program's own, which these kernels are in."""
        kernels = self.kernels_llvm(uses, writer.declared)
        return kernels + writer.declared.text() + program

    def _portion(self, trace: Trace, uses: dict[str, KernelUse]) -> str:
        trace.begin(f"lowering of kernels {_shown(uses)}")
        return self.kernels_llvm(uses)

    def _jit(self, portion: Portion, jit: Jit) -> Jit:
        """The compiler of a portion: `jit`, or one that takes the code as it is."""
        return Jit(level=0, cache=jit.cache, shaped=True) if portion.quick else jit

    def build(self, lowered: LoweredProgram, info: ProgramInfo) -> Executable:
        trace, uses = info.trace, lowered.kernels
        quick = quick_code.decisions(lowered)
        for decision in quick:
            trace.decide(decision)
        here, apart = portions(uses, {d.subject for d in quick}, quick_code.computes(lowered.thunks))
        jit = Jit(level=self.options.opt_level, cache=self.code_cache)

        def compiled(text: str, name: str, portion: Portion, at_code: Callable[[], None] | None = None) -> Object:
            with trace.beside(f"LLVM on module '{name}' with kernels {_shown(portion.uses)}"):
                return self._jit(portion, jit).compile(text, name, at_code=at_code)

        def beside(text: str, name: str, portion: Portion) -> Object:
            at_code = to_code.one()
            try:
                return compiled(text, name, portion, at_code)
            finally:
                at_code()

        hosts = HostCalls() if self.devices.count == 1 else DeviceHostCalls()
        writer = self.writer(uses, hosts.address, uses.keys() - here.uses.keys())
        program = writer.write(lowered.thunks)
        to_code = Countdown(len(apart))
        # they are at the code it calls and the first portions while the others are lowered
        with Compilers(len(apart) + len(writer.unmade)) as compilers:
            with trace.stage("llvm"):
                unmade = {symbol: compilers.submit(make, jit.cache) for symbol, make in writer.unmade.items()}
                others = [
                    compilers.submit(beside, self._portion(trace, p.uses), f"{info.name}.{n}", p)
                    for n, p in enumerate(apart)
                ]
                trace.begin(f"lowering of kernels {_shown(here.uses)}")
                text = self._whole_llvm(here.uses, writer, program)
                others += [compilers.submit(compiled_function, n, host().width, jit) for n in sorted(self.library)]
            with trace.stage("machine code"):
                own = compiled(text, info.name, here)
                to_code.wait()
                if not all(o.done() for o in others):  # a collection keeps Python's lock: now no thread needs it soon
                    collect_meanwhile()
                jit.symbols |= writer.externals | {symbol: made.result() for symbol, made in unmade.items()}
                code = jit.link(own, [ENTRY], [o.result() for o in others])
        objects = (*(o.result() for o in others), code)
        if jit.cache is not None:
            for made in objects:
                trace.decide(cache_decision(made.name, made.cached))
        if isinstance(hosts, DeviceHostCalls):
            threads = self.threads if writer.shares else 1
            place = jit.address(ENTRY), self.devices.partitions, writer.collectives, threads
            run = DeviceProgram(*place, self.options.device_timeout)
            return CpuDevices(info, run, list(writer.cliques), objects, hosts, writer.profile)
        shared = self.pool if writer.shares else None
        return CpuExecutable(info, jit.address(ENTRY), objects, hosts, shared, writer.profile)

    def text(self, stage: str, lowered: LoweredProgram) -> str:
        if stage == "mlir":
            return lowered_text(lowered.kernels)
        if stage in ("ptx", "sass"):
            raise no_stage(self.target, stage)
        modules = self.modules(lowered, "")
        return "\n".join(text if stage == "llvm" else jit.asm(text) for _, text, jit in modules)

    def modules(self, lowered: LoweredProgram, name: str) -> list[tuple[str, str, Jit]]:
        """Name, LLVM text and compiler of every module, the program's last."""
        uses, jit = lowered.kernels, Jit(level=self.options.opt_level)
        quick = {d.subject for d in quick_code.decisions(lowered)}
        here, apart = portions(uses, quick, quick_code.computes(lowered.thunks))
        found = [(f"{name}.{n}", self.kernels_llvm(portion.uses), portion) for n, portion in enumerate(apart)]
        writer = self.writer(uses, _no_address, uses.keys() - here.uses.keys())
        found.append((name, self._whole_llvm(here.uses, writer, writer.write(lowered.thunks)), here))
        *others, own = [(label, text, self._jit(portion, jit)) for label, text, portion in found]
        functions = [(f, function_text(f, host().width), function_compiler(f, jit)) for f in sorted(self.library)]
        return [*others, *functions, own]

    def code_keys(self, lowered: LoweredProgram, name: str) -> list[tuple[str, Key]]:
        return [(label, jit.key(text)) for label, text, jit in self.modules(lowered, name)]


@cache
def _pipelines() -> dict[str, Pipeline]:
    return {"hlo": pipeline.hlo(), "fused": pipeline.fuse(), "scheduled": pipeline.schedule()}


def _shown(kernels: Collection[str]) -> str:
    return ", ".join([*list(kernels)[:_SHOWN], *(["…"] if len(kernels) > _SHOWN else [])]) or "of one element"


def _items(kernel: Kernel) -> int:
    """The work items of a kernel; 0: a call computes some of its parts."""
    return 0 if kernel.parts else kernel.launch.work_items


def _no_address(_: HostThunk) -> int:
    return 0
