"""Errors as values: what is left of one that crosses a process."""

from __future__ import annotations

import copy
import pickle

import pytest

from heron.errors import HeronError, Span
from heron.runtime.cuda.driver import CallFailed

_SPAN = Span("a.hlo", 1, 2, 3, "text")


@pytest.mark.parametrize("copied", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))], ids=["copy", "pickle"])
@pytest.mark.parametrize(
    "error", [HeronError("HLO001", "what", where=_SPAN, why="why", hint="hint"), CallFailed("cuInit", 46)], ids=str
)
def test_an_error_crosses_processes_whole(error, copied) -> None:
    found = copied(error)
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.to_json() == error.to_json()
    assert found.__dict__ == error.__dict__
