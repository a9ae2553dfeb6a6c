"""Custom calls, whose operands and results nothing checks, are computed or refused: no other error comes out."""

from __future__ import annotations

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.evaluator.calls.table import known
from heron.hlo.calls.markers import UNWRITTEN
from heron.hlo.text import parse


@pytest.mark.parametrize("operands", ["", "x", "x, y", "y, x, y"])
@pytest.mark.parametrize("target", [t for t in known() if "heron" not in t])
def test_wrong_operands_are_refused(target: str, operands: str) -> None:
    if target == UNWRITTEN and not operands:
        pytest.skip("it takes none")
    text = f'ROOT c = f32[5,1,2] custom-call({operands}), custom_call_target="{target}"'
    module = parse(f"HloModule m\nENTRY e {{ x = f32[3,2] parameter(0) y = s32[] parameter(1) {text} }}\n")
    with pytest.raises(HeronError):
        evaluate(module, np.ones((3, 2), np.float32), np.int32(1))


@pytest.mark.parametrize("stated", ["s32[3,2]", "f64[3,2]", "f32[2,3]"])
def test_results_of_another_type_or_size_are_refused(stated: str) -> None:
    call = f'ROOT c = {stated} custom-call(x), custom_call_target="MoveToHost"'
    module = parse(f"HloModule m\nENTRY e {{ x = f32[3,2] parameter(0) {call} }}\n")
    with pytest.raises(HeronError, match="EVAL010"):
        evaluate(module, np.ones((3, 2), np.float32))
