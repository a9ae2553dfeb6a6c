"""``--crashes``: the program cannot be compiled or run; known again by the error's code, or by where it is raised."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import field

import numpy as np

from heron import targets
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.records import dataclass
from heron.reduce.checks import running
from heron.reduce.checks.at_work import place
from heron.reduce.checks.finding import FINE, Check, Finding

#: what a program that ended its process, or took too long, is called; the parent process finds that out
LOST = "lost"


@dataclass(frozen=True)
class Crashes(Check):
    """Compiling for ``target``, or running there, raises an error or ends the process."""

    target: str = "cpu"
    settings: Options = field(default_factory=Options)
    kinds = ("error", LOST)

    def look(self, module: Module, inputs: Sequence[np.ndarray]) -> Finding:
        try:
            machine = targets.get(running.target_name(self.target))
            executable = compile(module, machine, self.settings.replace(cache=False))
            if executable.devices == 1 and (machine.sim or not machine.is_gpu):
                executable.run(list(inputs))
        except Exception as error:
            return failure(error)
        return Finding(FINE)

    def options(self) -> str:
        return f"--crashes --target {self.target}"


def failure(error: Exception, who: str = "") -> Finding:
    """An exception as a finding: the sign is the error's code, or its type with the last place in Python."""
    *_, (raised_in, _line) = traceback.walk_tb(error.__traceback__)
    at = place(raised_in)
    near = (at,) if at else ()
    if isinstance(error, HeronError):
        return Finding("error", error.code, text=f"{who}{error.code}: {error.what}", near=near)
    code = raised_in.f_code
    where, kind = f"{code.co_filename.rpartition('/')[2]}:{code.co_name}", type(error).__name__
    return Finding("error", f"{kind} in {where}", text=f"{who}{kind}: {error} ({where})", near=near)
