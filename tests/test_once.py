"""What a process makes a single time."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import heron
from heron.once import once

#: pure functions of small values, which nobody has an address of
_VALUES = {"roots", "_module", "function", "known_layout", "row_major", "_said", "_sources"}


def test_threads_that_ask_at_once_get_one_answer() -> None:
    made: list[object] = []
    begin = threading.Barrier(8)

    @once
    def slow(name: str) -> object:
        time.sleep(0.05)
        made.append(name)
        return object()

    def ask(n: int) -> object:
        begin.wait()
        return slow("ab"[n % 2])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert sorted(made) == ["a", "b"]
    assert len({id(x) for x in found}) == 2


def test_an_error_is_not_kept() -> None:
    tries: list[int] = []

    @once
    def second() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return 7

    with pytest.raises(ValueError):
        second()
    assert second() == second() == 7 and len(tries) == 2


@pytest.mark.parametrize("folder", ["runtime", "pjrt"])
def test_what_has_an_address_is_made_once(folder: str) -> None:
    """`functools.cache` calls a function once a thread; what the others made is freed while it is in use."""
    for file in (Path(heron.__file__).parent / folder).rglob("*.py"):
        text = file.read_text()
        found = set(re.findall(r"@(?:functools\.)?(?:lru_)?cache\b[^\n]*\n\s*def (\w+)", text))
        assert found <= _VALUES, f"{file}: {found - _VALUES}: use heron.once"
        for kept in re.finditer(r"^ +\w+ = (_\w+)\[.+\] = ", text, re.MULTILINE):
            before = text[: kept.start()].splitlines()[-3:]
            why = "two threads may both find nothing there: use heron.once"
            assert any("with _LOCK:" in line for line in before), f"{file}: {kept[1]}: {why}"
