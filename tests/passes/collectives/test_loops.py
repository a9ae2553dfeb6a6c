"""Passes that move exchanges between the rounds of a loop, on loops of any start, step and number of rounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import heron
from heron.evaluator import evaluate_devices
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework.checks import ValueCheck, random_inputs
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

PASSES = [
    ("collective-pipeliner", {"direction": "early"}),
    ("collective-pipeliner", {"direction": "late"}),
    ("collective-permute-motion", {}),
    ("while-loop-all-reduce-code-motion", {}),
    ("while-loop-last-exchange-remover", {}),
]
ALL = "use_global_device_ids=true, replica_groups={{0,1}}"
LOOP = """
HloModule m, num_partitions=2
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
body {{
  s = ({state}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[4] get-tuple-element(s), index=1
  w = f32[6,2] get-tuple-element(s), index=2
  kept = f32[6,4] get-tuple-element(s), index=3
  parts = f32[6,2] get-tuple-element(s), index=4
  total = f32[4] get-tuple-element(s), index=5
  sent = f32[4] get-tuple-element(s), index=6
  zero = s32[] constant(0)
  half = f32[] constant(0.5)
  halves = f32[4] broadcast(half), dimensions={{}}
  step = s32[] constant({step})
  m = s32[] add(n, step)
  {lines}
  ROOT o = ({state}) tuple({root})
}}
condition {{
  s = ({state}) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  bound = s32[] constant({bound})
  ROOT c = pred[] compare(n, bound), direction={direction}
}}
ENTRY e {{
  x = f32[4] parameter(0)
  w = f32[6,2] parameter(1)
  kept = f32[6,4] parameter(2)
  start = s32[] constant({start})
  i = ({state}) tuple(start, x, w, kept, w, x, x)
  {whole}l = ({state}) while(i), condition=condition, body=body
  {end}
}}
"""
STATE = "s32[], f32[4], f32[6,2], f32[6,4], f32[6,2], f32[4], f32[4]"


@st.composite
def loops(draw: st.DrawFn) -> str:
    """A loop that gathers layers by number, stores and adds up sums, and passes values around, or some of these."""
    lines: list[str] = []
    root = ["m", "x", "w", "kept", "parts", "total", "sent"]
    after = draw(st.sampled_from(("n", "m")))
    if draw(st.booleans()):  # a layer's weights
        lines += [f"d = f32[1,2] dynamic-slice(w, {after}, zero), dynamic_slice_sizes={{1,2}}"]
        lines += ["e = f32[2] reshape(d)", f"g = f32[4] all-gather(e), channel_id=1, {ALL}, dimensions={{0}}"]
        lines += ["y = f32[4] multiply(x, g)", "z = f32[4] multiply(y, halves)", "v = f32[4] add(z, halves)"]
    else:
        lines += ["v = f32[4] multiply(x, halves)"]
    root[1] = "v"
    if draw(st.booleans()):  # a sum that is kept
        lines += [f"r = f32[4] all-reduce(v), channel_id=2, {ALL}, to_apply=add"]
        scaled = draw(st.booleans())
        lines += ["rs = f32[4] multiply(r, halves)"] * scaled
        lines += [f"q = f32[1,4] reshape({'rs' if scaled else 'r'})"]
        lines += [f"u = f32[6,4] dynamic-update-slice(kept, q, {after}, zero)"]
        root[3] = "u"
    if draw(st.booleans()):  # a part of a sum that is kept
        lines += [f"rp = f32[2] reduce-scatter(v), channel_id=3, {ALL}, dimensions={{0}}, to_apply=add"]
        lines += ["qp = f32[1,2] reshape(rp)", f"up = f32[6,2] dynamic-update-slice(parts, qp, {after}, zero)"]
        root[4] = "up"
    if draw(st.booleans()):  # sums added up
        lines += [f"ra = f32[4] all-reduce(v), channel_id=4, {ALL}, to_apply=add", "t = f32[4] add(total, ra)"]
        root[5] = "t"
    if draw(st.booleans()):  # a value that goes around
        lines += ["sine = f32[4] sine(sent)"]
        lines += ["p = f32[4] collective-permute(sine), channel_id=5, source_target_pairs={{0,1},{1,0}}"]
        lines += ["pn = f32[4] add(p, halves)"]
        root[6] = draw(st.sampled_from(("p", "pn")))
    step = draw(st.sampled_from((1, 2, -1)))
    start, trips = draw(st.integers(0, 3)) + (3 if step < 0 else 0), draw(st.integers(0, 4))
    if draw(st.booleans()):  # arrays are filled
        step = draw(st.sampled_from((1, -1)))
        start, trips = (0 if step > 0 else 5) + (step < 0 and after == "m") - (step > 0 and after == "m"), 6
    bound, direction = start + trips * step, "LT" if step > 0 else "GT"
    if draw(st.booleans()):
        bound, direction = bound - step, {"LT": "LE", "GT": "GE"}[direction]
    types, reads = STATE.split(", "), sorted(draw(st.sets(st.integers(0, 6))))
    end = [f"r{n} = {types[n]} get-tuple-element(l), index={n}" for n in reads]
    end += [f"ROOT t = ({', '.join(types[n] for n in reads)}) tuple({', '.join(f'r{n}' for n in reads)})"] * bool(reads)
    values = {"step": step, "bound": bound, "direction": direction, "start": start, "whole": "" if reads else "ROOT "}
    return LOOP.format(state=STATE, lines="\n  ".join(lines), root=", ".join(root), end="\n  ".join(end), **values)


@pytest.mark.parametrize(("name", "options"), PASSES, ids=lambda x: x if isinstance(x, str) else "".join(x.values()))
@settings(max_examples=15, deadline=None)
@given(text=loops())
def test_values_stay(name: str, options: dict[str, str], text: str) -> None:
    module = parse(text)
    verify(module)
    check = ValueCheck(module)
    if PassContext().run_pass(get(name, **options), module):
        verify(module)
        check.after(name, module)
        assert not PassContext().run_pass(get(name, **options), module), "a second run changed something again"


@settings(max_examples=15, deadline=None)
@given(text=loops())
def test_values_stay_after_all(text: str) -> None:
    module = parse(text)
    check = ValueCheck(module)
    for name, options in PASSES:
        PassContext().run_pass(get(name, **options), module)
    verify(module)
    check.after("all of them", module)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@settings(max_examples=2, deadline=None, phases=[Phase.generate])
@given(text=loops())
def test_pipelined_loops_compute_what_loops_do(target: str, text: str) -> None:
    module = parse(text)
    inputs = [random_inputs(module, device) for device in range(2)]
    program = heron.compile(module, target=target, options=Options(pipeline_collectives=True))
    for got, wanted in zip(program.run_devices(inputs), evaluate_devices(module, inputs), strict=True):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
