"""Measuring on a rehearsed device."""

from __future__ import annotations

from heron import targets
from heron.autotune.device import OnDevice
from heron.autotune.fragments import program_of
from heron.options import Options
from heron.passes.framework.measured import Fragment
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.executable import Executable
from heron.targets import Target
from tests.rehearsal.compiling import learn_from
from tests.rehearsal.driver import Recorder

ON = Options(triton="on")


class OnRecorder(OnDevice):
    """Measures on a rehearsed device."""

    def __init__(self, recorder: Recorder, options: Options = ON) -> None:
        super().__init__(targets.get("sm_90"), options, self._build, sweep=1 << 20, warm=0.0)
        self.recorder = recorder

    def _build(self, fragment: Fragment, way: str, target: Target, options: Options) -> Executable:
        program = program_of(fragment, way, options)
        made = program.compilation(self.target).executable()
        assert isinstance(made, CudaExecutable)
        learn_from(made, self.recorder, program.compilation)
        return made
