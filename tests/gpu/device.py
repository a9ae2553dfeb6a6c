"""`Gpu`: what a test of tests/gpu gets."""

from __future__ import annotations

from dataclasses import dataclass

from heron.backends import compiler
from heron.hlo.module import Module
from heron.options import Options
from heron.runtime.cuda.device import Device, device
from heron.runtime.cuda.executable import CudaExecutable
from tests.rehearsal import compiling
from tests.rehearsal.driver import Recorder


@dataclass
class Gpu:
    """A device to test on. ``recorder``: the driver of a rehearsal."""

    recorder: Recorder | None

    @property
    def device(self) -> Device:
        return device()

    def compile(self, module: Module, options: Options | None = None) -> CudaExecutable:
        if self.recorder is not None:
            return compiling.compile(module, self.recorder, options=options)
        made = compiler.compile(module, "cuda", options)
        assert isinstance(made, CudaExecutable)
        return made
