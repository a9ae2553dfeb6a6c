"""topk as op and as custom call, both ends, ties, NaNs and zeros, several types."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.fusion import sort_tiles
from heron.evaluator import Evaluator
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext
from tests.passes.values import special_values

CALLS = {
    "largest": "topk(x), k=4, largest=true",
    "smallest": "topk(x), k=4, largest=false",
    "custom call": 'custom-call(x), custom_call_target="TopK"',
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("t", ["f32", "bf16", "f64", "s32", "u8"])
def test_values(call: str, t: str) -> None:
    body = f"  x = {t}[3,17] parameter(0)\n  ROOT r = ({t}[3,4], s32[3,4]) {call}\n"
    module = parse("HloModule m\n\nENTRY main {\n" + body + "}\n")
    pool = special_values(module.entry.parameters[0].shape.element_type, "exact")
    x = np.random.default_rng(3).choice(pool, (3, 17))
    wanted = Evaluator(module).run(x)
    assert PassContext().run_pass(registry.get("topk-decomposer"), module)
    verify(module)
    assert [i.opcode for i in module.entry.instructions if i.opcode in ("topk", "custom-call")] == []
    for found, value in zip(Evaluator(module).run(x), wanted, strict=True):
        assert found.tobytes() == value.tobytes()


@pytest.mark.parametrize("n", [5, 8, 9, 40, 61])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("t", ["f32", "bf16", "f64", "s32", "u16"])
def test_in_tiles(n: int, call: str, t: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_tiles, "MAX_TILE", 8)
    body = f"  x = {t}[3,{n}] parameter(0)\n  ROOT r = ({t}[3,4], s32[3,4]) {call}\n"
    module = parse("HloModule m\n\nENTRY main {\n" + body + "}\n")
    element = module.entry.parameters[0].shape.element_type
    x = np.random.default_rng(n).choice(special_values(element, "exact"), (3, n))
    if element.is_float and n == 9:
        x[:] = np.array((1 << element.bits) - 1, f"u{element.byte_size}").view(element.dtype)  # as what fills up
    wanted = Evaluator(module).run(x)
    assert PassContext().run_pass(registry.get("topk-decomposer", tiles=True), module)
    verify(module)
    sorts = [i for i in module.entry.instructions if i.opcode == "sort"]
    assert all(s.operands[0].shape.dims[-1] <= 8 for s in sorts)
    for found, value in zip(Evaluator(parse(str(module))).run(x), wanted, strict=True):
        assert found.tobytes() == value.tobytes()
