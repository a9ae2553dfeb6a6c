"""Calls between arrays of run-time sizes and static ones: their sizes are s32, one a dimension."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.hlo.text import parse
from heron.hlo.verifier import verify

PAD = 'ROOT r = {} custom-call(x), custom_call_target="PadToStatic"'
SLICE = 'ROOT r = f32[<=4,3] custom-call(y, {}), custom_call_target="SliceToDynamic"'


def module(line: str) -> str:
    given = ["x = f32[<=4,3]", "y = f32[4,3]", "n = s32[]", "narrow = s8[]", "many = s32[2]"]
    return "HloModule m\nENTRY e {\n" + "".join(f"{p} parameter({k})\n" for k, p in enumerate(given)) + line + "\n}\n"


@pytest.mark.parametrize("line", [PAD.format("(f32[4,3], s32[], s32[])"), SLICE.format("n, n")])
def test_calls_that_fit(line: str) -> None:
    verify(parse(module(line)))


@pytest.mark.parametrize(
    "line",
    [
        PAD.format("(f32[4,3], s8[], s32[])"),
        PAD.format("(f32[4,3], s32[])"),
        PAD.format("(f32[3,3], s32[], s32[])"),
        PAD.format("(f64[4,3], s32[], s32[])"),
        PAD.format("f32[4,3]"),
        SLICE.format("n"),
        SLICE.format("n, narrow"),
        SLICE.format("n, many"),
    ],
)
def test_calls_that_do_not_fit(line: str) -> None:
    with pytest.raises(HeronError, match="HLO172"):
        verify(parse(module(line)))
