"""What JAX lowers means the same to heron: a table of expressions against XLA:CPU."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

from tests.frontends.corpus.check import check
from tests.frontends.corpus.table import FAMILIES, expressions


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    wrong = check(expressions(family))
    assert not wrong, "\n".join(wrong)


def test_the_check_sees_other_values(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.frontends.corpus import check as module

    monkeypatch.setattr(module, "evaluate", lambda _, *arrays: [arrays[0] * 2])
    assert check(["x + 0"])[0].startswith("x + 0: result 0 is")
    monkeypatch.setattr(module, "evaluate", lambda _, *arrays: [arrays[0].astype(float)])
    assert "float64" in check(["x + 0"])[0]
