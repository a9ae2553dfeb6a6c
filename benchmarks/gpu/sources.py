"""The programs that are measured: the real ones, and as ``reach.NAME`` those of `tests.gpu.reach`.

They are for parts of the path that no real program needs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import programs
from heron.cli import values
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.options import Options
from tests.gpu.reach import PROGRAMS, Reach

PREFIX = "reach."


def of_reach() -> list[str]:
    """The names of programs for parts of the path, but for those that set up the process or are refused."""
    return [PREFIX + n for n, case in PROGRAMS.items() if not case.environment and not case.refusal]


def _case(name: str) -> Reach | None:
    """The program for a part of the path. Raises CLI010 for an unknown name."""
    if not name.startswith(PREFIX):
        return None
    if name not in of_reach():
        raise HeronError("CLI010", f"no benchmark program '{name}'", hint=", ".join(of_reach()))
    return PROGRAMS[name.removeprefix(PREFIX)]


def text(name: str, small: bool) -> str:
    """A program as HLO. Raises CLI010 for an unknown name."""
    case = _case(name)
    return case.source(full=not small) if case else programs.path(name, small, "cuda").read_text()


def path(name: str, small: bool, folder: Path) -> Path:
    """The file of a program; ``folder``: for one that is made."""
    if _case(name) is None:
        return programs.path(name, small, "cuda")
    made = folder / f"{name}.hlo"
    made.write_text(text(name, small))
    return made


def options(name: str) -> Options:
    """The options that a program is compiled with."""
    case = _case(name)
    return case.options if case else Options()


def arguments(name: str, small: bool) -> list[np.ndarray]:
    """The arrays that a program is measured on."""
    case = _case(name)
    if case is not None:
        return case.inputs(np.random.default_rng(0), case.sizes[not small])
    return values.random(parse(text(name, small)), 0)
