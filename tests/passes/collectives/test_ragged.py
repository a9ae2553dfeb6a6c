"""Passes on ragged-all-to-alls, with pieces of any length between devices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.evaluator import evaluate_devices
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

TEXT = """
HloModule m, replica_count={devices}
ENTRY e {{
  x = f32[9,2] parameter(0)
  y = f32[12,2] parameter(1)
  starts = {t}[{k}] parameter(2)
  sizes = {t}[{k}] parameter(3)
  targets = {t}[{k}] parameter(4)
  taken = {t}[{k}] parameter(5)
  ROOT r = f32[12,2] ragged-all-to-all(x, y, starts, sizes, targets, taken), replica_groups={groups}
}}
"""


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[str, list[list[np.ndarray]]]:
    """A program, and for each device arrays and pieces that lie in them, which may overlap."""
    devices = draw(st.sampled_from((2, 4)))
    groups = draw(st.sampled_from(("{}", "{{1,0}}") if devices == 2 else ("{}", "{{0,2},{3,1}}")))
    members = 2 if groups == "{{0,2},{3,1}}" else devices
    k, element = members * draw(st.integers(1, 2)), draw(st.sampled_from(("s32", "s64", "u8")))
    t = {"s32": np.int32, "s64": np.int64, "u8": np.uint8}[element]
    inputs: list[list[np.ndarray]] = []
    for device in range(devices):
        rng = np.random.default_rng(device)
        sizes = np.array(draw(st.lists(st.integers(0, 4), min_size=k, max_size=k)))
        starts, targets = ([draw(st.integers(0, most - n)) for n in sizes] for most in (9, 12))
        vectors = [np.array(v).astype(t) for v in (starts, sizes, targets, sizes)]
        inputs.append([*(rng.integers(0, 99, (n, 2)).astype(np.float32) for n in (9, 12)), *vectors])
    return TEXT.format(devices=devices, t=element, k=k, groups=groups), inputs


@pytest.mark.parametrize("name", ["ragged-all-to-all-canonicalizer", "ragged-all-to-all-decomposer"])
@settings(max_examples=25, deadline=None)
@given(program=exchanges())
def test_rows_arrive_where_they_belong(name: str, program: tuple[str, list[list[np.ndarray]]]) -> None:
    text, inputs = program
    module = parse(text)
    wanted = evaluate_devices(module, inputs)
    assert PassContext().run_pass(get(name), module) or "s64" in text
    verify(module)
    for a, b in zip(evaluate_devices(module, inputs), wanted, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
