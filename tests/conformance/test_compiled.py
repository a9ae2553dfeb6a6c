"""A part of the cases on compiled programs; ``python -m tests.conformance --target cpu`` runs all."""

from __future__ import annotations

import pytest

from tests.conformance import compiled

#: one case of so many
_EVERY = {"cpu": 23, "sim:sm_90": 47}


@pytest.mark.parametrize("target", list(_EVERY))
def test_compiled_programs_agree_with_the_evaluator(target: str) -> None:
    outcomes = list(compiled.run(compiled.cases()[:: _EVERY[target]], target))
    wrong = [f"{o.case.name}: {o.words}\n{o.case.text}" for o in outcomes if o.verdict in ("differ", "refused")]
    assert not wrong, f"{len(wrong)} of {len(outcomes)}:\n" + "\n".join(wrong[:5])
