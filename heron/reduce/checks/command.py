"""``--check 'command'``: a command of the user's fails on the program."""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.records import dataclass
from heron.reduce.case import INPUTS, PROGRAM, Case
from heron.reduce.checks.finding import FINE, Check, Finding

_LAST = 200  # characters of its output that a failing command is quoted with


@dataclass(frozen=True)
class Command(Check):
    """A command that ends with another exit code than 0 where the fault is, the same one as at first.

    ``{}`` stands for a file with the program, ``{inputs}`` for a file with its inputs. With ``says``, a regular
    expression, its output must match as well.
    """

    command: str
    says: str = ""
    kinds = ("fails",)

    def __post_init__(self) -> None:
        if "{}" not in self.command:
            what = f"'{self.command}' does not take the program"
            raise HeronError("CLI037", what, hint="write {} where the file's name goes")

    def look(self, module: Module, inputs: Sequence[np.ndarray]) -> Finding:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            Case(module, tuple(inputs)).write(folder)
            places = {"{}": str(folder / PROGRAM), "{inputs}": str(folder / INPUTS)}
            words = [re.sub(r"\{\}|\{inputs\}", lambda m: places[m[0]], w) for w in shlex.split(self.command)]
            try:
                done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
            except OSError as error:
                return Finding("error", "CLI037", text=f"cannot run '{words[0]}': {error.strerror}")
        said = done.stdout + done.stderr
        if done.returncode == 0 or (self.says and not re.search(self.says, said)):
            return Finding(FINE)
        last = (said.strip().splitlines() or [""])[-1][:_LAST]
        text = f"the command ends with {done.returncode}" + (f": {last}" if last else "")
        return Finding("fails", str(done.returncode), text=text)

    def options(self) -> str:
        says = f" --says {shlex.quote(self.says)}" if self.says else ""
        return f"--check {shlex.quote(self.command)}{says}"
