"""The table of docs/reference/workloads.md is true: what it calls ok lowers to kernels and library calls, the rest is refused so.

Values are compared by `test_workloads.py` for some programs and by ``python -m benchmarks.coverage`` for all.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heron import targets
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.hlo.text import parse
from heron.options import Options
from heron.trace import Trace
from tests.backends.test_workloads import CUDA, RUN
from tests.support import NAMES, program

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "workloads.md").read_text()
_LARGE = {"gpt2_12l_train_step", "threefry"}


def table() -> dict[str, dict[str, str]]:
    """Each program's cells by column."""
    rows = [[c.strip() for c in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
    head, *body = rows
    return {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in body}


def lowered(name: str, target: str) -> str:
    """``ok``, or the error code that stops the program on its way to kernels, machine code left out."""
    module = parse(program(name, platform="cpu" if target == "cpu" else "cuda").read_text())
    try:
        _ = Compilation(module, targets.get(target), Options(), Trace()).lowered
    except HeronError as error:
        return error.code
    return "ok"


def test_the_table_has_every_program() -> None:
    assert sorted(table()) == sorted(NAMES)
    assert all(set(row) == {"evaluator", "cpu", "sim:sm_90", "sim:sm_90 checked", "sm_90"} for row in table().values())


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("name", [n for n in NAMES if n not in _LARGE and (n not in RUN or n in CUDA)])
def test_the_table_is_true(name: str, target: str) -> None:
    code = re.match(r"[A-Z]+\d+|ok", table()[name][target])
    assert code is not None and code[0] == lowered(name, target)
