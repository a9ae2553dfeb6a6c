"""Sequences: what one process does, step by step, with a few programs, drawn by number.

After every run the bits of the results are compared with those the program gave in a process of its own.
"""

from __future__ import annotations

import gc
import os
import random
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import heron
from heron.errors import HeronError
from heron.runtime.executable import Executable
from tests.state.programs import Subject, digest, names, subject

_STEPS = (5, 14)
_THREADS = 4
#: is refused in the middle of a compile: no target computes it
_REFUSED = """HloModule refused
ENTRY e { p = f32[4]{0} parameter(0)
  ROOT c = f32[4]{0} custom-call(p), custom_call_target="nobody_knows_this" }"""


@dataclass
class _Process:
    """The state of a sequence: what is compiled, and what was done."""

    wanted: dict[str, list[str]]
    draw: random.Random
    executables: list[tuple[Subject, Executable]] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """What a sequence found: '' when every run gave the same bits; and its steps."""

    problem: str
    steps: list[str]


def chosen(number: int) -> list[str]:
    """The programs of a sequence."""
    draw = random.Random(number)
    return draw.sample(list(names()), draw.randint(2, 4))


def run(job: tuple[int, dict[str, list[str]]]) -> Report:
    """The sequence of that number.

    Args:
        job: the number, and for each program the bits of its results by itself (`programs.alone`).
    """
    number, wanted = job
    process = _Process(wanted, random.Random(number + 1_000_000))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HERON_CACHE_DIR"] = folder
        try:
            for _ in range(process.draw.randint(*_STEPS)):
                process.draw.choice(_ACTIONS)(process)
            for subject_, executable in process.executables:
                _run(process, subject_, executable)
        except Exception as error:
            return Report(f"{type(error).__name__}: {error}", process.done)
    return Report("", process.done)


def first_together(job: tuple[str, list[str]]) -> str:
    """What goes wrong when several threads compile and run the first program of a process; '' when nothing does."""
    name, wanted = job
    process = _Process({name: wanted}, random.Random(0))
    try:
        _together(process)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _pick(process: _Process) -> Subject:
    return subject(process.draw.choice(list(process.wanted)))


def _compile(process: _Process) -> None:
    """Compile; the same text for LLVM as every time before."""
    s = _pick(process)
    process.done.append(f"compile {s.name}")
    executable = heron.compile(s.module(), s.target)
    process.executables.append((s, executable))
    text = executable.stage("scheduled")
    assert process.texts.setdefault(s.name, text) == text, f"{s.name}: another schedule than before"


def _compile_kept(process: _Process) -> None:
    """Compile with the cache, which may be cold, warm, or just cleared."""
    s = _pick(process)
    process.done.append(f"compile {s.name} with the cache")
    process.executables.append((s, heron.compile(s.module(), s.target, options=heron.Options(cache=True))))


def _compile_otherwise(process: _Process) -> None:
    """Compile with options that change no value."""
    s = _pick(process)
    options = process.draw.choice(({"threads": 1}, {"threads": 3}, {"profile": True}, {"check": "verify"}))
    process.done.append(f"compile {s.name} with {options}")
    process.executables.append((s, heron.compile(s.module(), s.target, options=heron.Options(**options))))


def _refuse(process: _Process) -> None:
    """A compile that ends in an error."""
    process.done.append("compile what is refused")
    try:
        heron.compile(heron.parse(_REFUSED), _pick(process).target)
    except HeronError:
        return
    raise AssertionError("an unknown custom call was compiled")


def _run_one(process: _Process) -> None:
    if process.executables:
        _run(process, *process.draw.choice(process.executables))


def _interleave(process: _Process) -> None:
    """Two executables in turn."""
    if process.executables:
        pair = [process.draw.choice(process.executables) for _ in range(2)]
        for _ in range(3):
            for s, executable in pair:
                _run(process, s, executable)


def _together(process: _Process) -> None:
    """Threads that compile and run at once."""
    subjects = [_pick(process) for _ in range(_THREADS)]
    process.done.append(f"in {_THREADS} threads: {', '.join(s.name for s in subjects)}")

    def work(s: Subject) -> list[str]:
        executable = heron.compile(s.module(), s.target)
        return [digest(executable.run(list(inputs))) for inputs in s.inputs]

    with ThreadPoolExecutor(_THREADS) as pool:
        for s, found in zip(subjects, pool.map(work, subjects), strict=True):
            assert found == process.wanted[s.name], f"{s.name}: other bits, compiled in a thread beside others"


def _call_together(process: _Process) -> None:
    """Threads that call one executable at once."""
    if not process.executables:
        return
    s, executable = process.draw.choice(process.executables)
    process.done.append(f"call {s.name} in {_THREADS} threads")
    with ThreadPoolExecutor(_THREADS) as pool:
        runs = [pool.submit(lambda n=n: digest(executable.run(list(s.inputs[n % 2])))) for n in range(2 * _THREADS)]
        for n, future in enumerate(runs):
            assert future.result() == process.wanted[s.name][n % 2], f"{s.name}: other bits, called by several threads"


def _forget(process: _Process) -> None:
    if process.executables:
        s, _ = process.executables.pop(process.draw.randrange(len(process.executables)))
        process.done.append(f"forget {s.name}")
        gc.collect()


def _clear(process: _Process) -> None:
    """Remove every other file of the cache."""
    process.done.append("clear half of the cache")
    for file in sorted(Path(os.environ["HERON_CACHE_DIR"]).rglob("*"))[::2]:
        if file.is_file():
            file.unlink()


def _save(process: _Process) -> None:
    """Write a program into a file, and read it back."""
    found = [(s, e) for s, e in process.executables if s.target == "cpu"]
    if found:
        s, executable = process.draw.choice(found)
        process.done.append(f"save and load {s.name}")
        path = Path(os.environ["HERON_CACHE_DIR"]) / "saved.heron"
        try:
            heron.save(executable, path)
        except HeronError as error:
            assert error.code == "RUN052", error  # it comes from a file itself
            return
        process.executables.append((s, heron.load(path)))


def _evaluate(process: _Process) -> None:
    s = _pick(process)
    process.done.append(f"evaluate {s.name}")
    with np.errstate(all="ignore"):
        heron.evaluate(s.module(), *s.inputs[0])


def _run(process: _Process, s: Subject, executable: Executable) -> None:
    n = process.draw.randrange(2)
    process.done.append(f"run {s.name} on inputs {n}")
    inputs = [a.copy() for a in s.inputs[n]]
    found = digest(executable.run(inputs))
    assert found == process.wanted[s.name][n], f"{s.name}: other bits on inputs {n}"


_ACTIONS: Sequence[Callable[[_Process], None]] = (
    _compile, _compile, _compile_kept, _compile_kept, _compile_otherwise, _refuse, _run_one, _run_one, _interleave,
    _together, _call_together, _forget, _clear, _save, _evaluate,
)  # fmt: skip
