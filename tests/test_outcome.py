"""What comes of work that another thread does: one value or one error, for all who wait."""

from __future__ import annotations

import subprocess
import sys
from threading import Thread

import pytest

from heron.outcome import Outcome, beside


def test_all_who_wait_get_the_value() -> None:
    outcome, found = Outcome[int](), list[int]()
    waiting = [Thread(target=lambda: found.append(outcome.result())) for _ in range(3)]
    for thread in waiting:
        thread.start()
    assert not outcome.done() and not found
    outcome.give(7)
    for thread in waiting:
        thread.join()
    assert found == [7, 7, 7] and outcome.done() and outcome.result() == 7


def test_an_error_is_raised_by_who_asks() -> None:
    outcome = Outcome[int]()
    outcome.fail(ValueError("no"))
    assert outcome.done()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            outcome.result()


def test_work_beside_gives_what_it_gives() -> None:
    assert beside(lambda: 7).result() == 7
    with pytest.raises(ZeroDivisionError):
        beside(lambda: 1 // 0).result()


@pytest.mark.parametrize(
    "op", ["negate(x)", "dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}"], ids=["kernel", "product"]
)
def test_a_compile_loads_no_logging(op: str) -> None:
    """`concurrent.futures` does."""
    program = f"HloModule m\\nENTRY e {{ x = f32[64,64] parameter(0)\\n ROOT y = f32[64,64] {op} }}"
    text = f"import heron, sys; heron.compile(heron.parse('{program}')); print('logging' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
