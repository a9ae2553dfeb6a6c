"""Elementwise ops of all types at their corners, against XLA:CPU."""

from __future__ import annotations

import pytest

from tests.conformance import elementwise
from tests.conformance.elementwise import BINARY, UNARY
from tests.conformance.runner import expect_agreement

OPCODES = [*UNARY, *BINARY, "compare", "select", "clamp"]


@pytest.mark.parametrize("opcode", OPCODES)
def test_agrees_with_xla(opcode: str) -> None:
    expect_agreement(list(elementwise.cases(only=opcode)))
