"""Generated programs give the same in the evaluator and in XLA:CPU."""

from __future__ import annotations

import pytest

from tests.conformance import programs


def test_generated_programs_agree() -> None:
    outcomes = list(programs.run(250))
    wrong = [o for o in outcomes if o.verdict == "differ"]
    if wrong:
        least = min(wrong, key=lambda o: len(o.words))
        pytest.fail(f"{len(wrong)} of {len(outcomes)} programs differ:\n{least.words}", pytrace=False)
