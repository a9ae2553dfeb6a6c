"""LLVM driver shared by every target: parse, verify, run the standard pipeline, time each step.

llvmlite is imported on first use, never at package import.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine

LOCK = threading.RLock()  # llvmlite has one global lock; ours also guards our own caches


@cache
def binding() -> ModuleType:
    """llvmlite.binding with this machine's target initialised. Raises LLVM010 when llvmlite is missing or too old."""
    try:
        import llvmlite
        import llvmlite.binding as llvm
    except ImportError as error:
        raise HeronError("LLVM010", "llvmlite is not installed", hint="pip install 'llvmlite>=0.50'") from error
    if tuple(int(part) for part in re.findall(r"\d+", llvmlite.__version__)[:2]) < (0, 50):
        raise HeronError(
            "LLVM010",
            f"llvmlite {llvmlite.__version__} is too old",
            why="heron writes LLVM 22 IR",
            hint="pip install 'llvmlite>=0.50'",
        )
    # all targets would be more passes in its registry, which LLVM goes through again and again for every module
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    # Loop strength reduction takes every sum that an induction variable goes into for an address: on long integer code
    # (a random number generator's rounds) it takes 18 times as long as all the rest of code generation. Addresses here
    # are a base and an index already; leaving it out makes the code of other kernels no worse.
    llvm.set_option("heron", "-disable-lsr")
    # Loops that compute a checksum bit by bit would become lookups. The search for them follows each path through the
    # selects of any loop of known length: a reduction by atan2 of 8-bit floats took it minutes.
    llvm.set_option("heron", "-disable-loop-idiom-hashrecognize")
    return llvm


@cache
def binding_for_gpus() -> ModuleType:
    """llvmlite.binding with the targets of other machines, too. Raises LLVM010."""
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def parse(text: str, triple: str, layout: str, *, apart: bool = False) -> ModuleRef:
    """Parse and verify LLVM text for a target, `apart`: into a context of its own. Raises LLVM011 with the bad line."""
    llvm = binding()
    try:
        module = llvm.parse_assembly(text, llvm.create_context() if apart else None)
        module.triple = triple
        module.data_layout = layout
        module.verify()
    except RuntimeError as error:
        raise _bad_ir(str(error), text) from error
    return module


def _bad_ir(message: str, text: str) -> HeronError:
    match = re.search(r":(\d+):(\d+): error: (.*)", message)
    where = None
    if match:
        lines, number = text.splitlines(), int(match.group(1))
        where = f"line {number}: {lines[number - 1].strip()}" if number <= len(lines) else None
        message = match.group(3)
    return HeronError("LLVM011", "LLVM refused the generated IR", where=where, why=message.strip()[:1000])


def run_pipeline(module: ModuleRef, machine: TargetMachine, level: int, **tuning: Any) -> None:
    """LLVM's default pipeline for that optimisation level (0 to 3), aware of the target."""
    manager, builder = pipeline(machine, level, **tuning)
    try:
        manager.run(module, builder)
    finally:
        free(manager)


def pipeline(machine: TargetMachine, level: int, **tuning: Any) -> tuple[Any, Any]:
    """The pass manager of that pipeline and its builder; they serve one module, then the manager is to be freed."""
    llvm = binding()
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level >= 2
    options.slp_vectorization = False  # loops are ours to vectorise; SLP doubled the time on long straight code
    options.loop_interleaving = options.loop_unrolling = level >= 2
    for key, value in tuning.items():
        setattr(options, key, value)
    builder = llvm.create_pass_builder(machine, options)
    return builder.getModulePassManager(), builder


def slots_to_registers(machine: TargetMachine, tidied: bool = False) -> tuple[Any, Any]:
    """As `pipeline`, with two passes: functions that must be are inlined, and stack slots become registers. A tenth of
    the time. ``tidied``: with a third, which writes instructions in shorter ways."""
    llvm = binding()
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_sroa_pass()
    if tidied:
        manager.add_instruction_combine_pass()
    return manager, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))


def free(manager: Any) -> None:
    """Free a pass manager over modules, 55 to 150 KiB: in llvmlite 0.50 neither its end nor its `close` does."""
    binding().ffi.lib.LLVMPY_DisposeNewModulePassManger(manager)
    manager.detach()


class Clock:
    """Laps of a stopwatch; ``now`` gives the time, that on the wall or what the process has spent."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self.now = now
        self.last = now()

    def lap(self) -> float:
        """Seconds since the last lap."""
        now = self.now()
        elapsed, self.last = now - self.last, now
        return elapsed
