"""Where the real programs are, and how tests call the command line."""

from __future__ import annotations

import contextlib
import io
import shlex
import signal
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

WORKLOADS = Path(__file__).parent / "workloads"
NAMES = sorted(p.name.removesuffix(".small.hlo") for p in (WORKLOADS / "hlo").glob("*.small.hlo"))


def program(name: str, small: bool = True, platform: str = "cpu") -> Path:
    """The HLO text of a workload, as JAX lowers it for ``cpu`` or ``cuda``."""
    folder = "hlo_cuda" if platform == "cuda" else "hlo"
    return WORKLOADS / folder / f"{name}{'.small' if small else ''}.hlo"


def counting_loop(times: int, size: int) -> str:
    """HLO of a loop that counts to `times` and takes the hyperbolic tangent of f32[size] each time round."""
    return f"""
HloModule counting

body {{
  p = (s32[], f32[{size}]{{0}}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[{size}]{{0}} get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[{size}]{{0}} tanh(x)
  ROOT t = (s32[], f32[{size}]{{0}}) tuple(next, y)
}}

condition {{
  p = (s32[], f32[{size}]{{0}}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({times})
  ROOT c = pred[] compare(i, n), direction=LT
}}

ENTRY main {{
  x = f32[{size}]{{0}} parameter(0)
  zero = s32[] constant(0)
  init = (s32[], f32[{size}]{{0}}) tuple(zero, x)
  ROOT loop = (s32[], f32[{size}]{{0}}) while(init), condition=condition, body=body
}}
"""


def golden_values(name: str) -> Path:
    """Inputs and XLA:CPU's outputs for a workload's small program."""
    return WORKLOADS / "goldens" / f"{name}.npz"


def tolerances(name: str) -> list[object]:
    """Arguments for ``heron run`` or ``eval`` on that workload: nothing, except where values are partly noise."""
    known = tomllib.loads((WORKLOADS / "tolerances.toml").read_text()).get(name, {})
    return [word for key, value in known.items() for word in (f"--{key}", value)]


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C as a terminal has it, here and in processes started inside: shells ignore it in what they run behind."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass(frozen=True)
class Result:
    """What a command line gave back."""

    code: int
    out: str
    err: str


class _Stream(io.TextIOWrapper):
    def __init__(self, data: bytes = b"") -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8", write_through=True)

    def text(self) -> str:
        return self.buffer.getvalue().decode()  # type: ignore[attr-defined]


def heron(*argv: object, stdin: str | bytes = "") -> Result:
    """Run ``heron ARGV`` in this process, which is 20 times faster than starting one."""
    from heron.cli.main import invoke

    out, err, before = _Stream(), _Stream(), sys.stdin
    sys.stdin = _Stream(stdin.encode() if isinstance(stdin, str) else stdin)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = invoke([str(a) for a in argv])
    finally:
        sys.stdin = before
    return Result(code, out.text(), err.text())


def filecheck(text: str, *arguments: object) -> Result:
    """Run ``filecheck ARGUMENTS`` on `text` in this process."""
    from filecheck.main import main

    out, before, code = _Stream(), sys.stdin, 0
    sys.stdin = _Stream(text.encode())
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            main(["filecheck", *map(str, arguments)])
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdin = before
    return Result(code, out.text(), "")


def run_line(line: str, file: Path) -> Result:
    """Run one RUN line of a lit test here: stages ``heron …``, ``not heron …`` and ``filecheck …`` joined by pipes."""
    words = [word.replace("%s", str(file)) for word in shlex.split(line)]
    result = Result(0, "", "")
    while words:
        end = words.index("|") if "|" in words else len(words)
        stage, words = words[:end], words[end + 1 :]
        negate, merge = stage[0] == "not", "2>&1" in stage
        command, *arguments = [w for w in stage[negate:] if w != "2>&1"]
        if command == "heron":
            ran = heron(*arguments, stdin=result.out)
        elif command == "filecheck":
            ran = filecheck(result.out, *arguments)
        else:
            raise ValueError(f"{file}: a RUN line is made of heron and filecheck, not '{command}'")
        failed = (ran.code != 0) != negate
        result = Result(int(failed), ran.out + (ran.err if merge else ""), ran.err)
        if failed:
            return Result(1, ran.out, f"`{' '.join(stage)}` ended with {ran.code}\n{ran.err}")
    return result
