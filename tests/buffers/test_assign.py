from __future__ import annotations

import json

import numpy as np
import pytest

from heron.analysis.graph import alias
from heron.buffers import assign
from heron.buffers.check import misaligned, prove, run_in_buffers
from heron.buffers.report import report, to_json
from heron.errors import HeronError
from heron.hlo.text import parse
from tests.buffers.compiled import assert_survives, compiled, copies

CHAIN = """HloModule chain

ENTRY main {
  x = f32[1000]{0} parameter(0)
  a = f32[1000]{0} sine(x)
  b = f32[1000]{0} reverse(a), dimensions={0}
  c = f32[1000]{0} reverse(b), dimensions={0}
  d = f32[1000]{0} reverse(c), dimensions={0}
  ROOT e = f32[1000]{0} reverse(d), dimensions={0}
}
"""


def test_a_chain_goes_to_and_fro_between_temp_and_the_output() -> None:
    _, assignment, _ = assert_survives(CHAIN)
    assert assignment.temp_bytes == 4000 and assignment.output_bytes == 4000
    module, _, _ = compiled(CHAIN)
    assert assign(module, reuse_outputs=False).temp_bytes == 4032 + 4000
    assert assign(module, alignment=256, reuse_outputs=False).temp_bytes == 4096 + 4000


def test_elementwise_results_take_their_operands_place(monkeypatch: pytest.MonkeyPatch) -> None:
    text = CHAIN.replace("reverse(a), dimensions={0}", "negate(a)").replace("reverse(b), dimensions={0}", "negate(b)")
    module, assignment, _ = assert_survives(text)
    at = {i.name: i for i in module.entry.instructions}
    assert assignment.slice_of(at["a"]) == assignment.slice_of(at["b"]) == assignment.slice_of(at["c"])
    monkeypatch.setattr(alias, "may_share_buffer", lambda i, operand, index: False)
    apart = assign(module)
    assert apart.slice_of(at["a"]) != apart.slice_of(at["b"])


def test_what_it_tells() -> None:
    module, assignment, _ = compiled(CHAIN)
    text = report(assignment)
    assert "parameter 0" in text and "output 0" in text and "temporaries at the peak" in text
    facts = json.loads(json.dumps(to_json(assignment)))
    assert facts["temp_bytes"] == assignment.temp_bytes and facts["argument_bytes"] == 4000
    assert {a["kind"] for a in facts["allocations"]} == {"parameter", "output", "temp"}
    assert assignment.parameter(0).size == 4000 and assignment.allocation_of(module.entry.root).output == 0
    with pytest.raises(HeronError) as error:
        assignment.parameter(3)
    assert error.value.code == "BUF004"


def test_nothing_to_store() -> None:
    text = "HloModule m\n\nENTRY main {\n  x = f32[0]{0} parameter(0)\n  ROOT n = f32[0]{0} negate(x)\n}\n"
    _, assignment, _ = assert_survives(text, inputs=[np.zeros(0, np.float32)])
    assert assignment.temp is None and assignment.temp_bytes == 0


BAD_ALIASES = {
    "another size": ([((0,), 1, (), "may-alias")], "f32[3]{0} has 12 bytes, f32[8]{0} has 32"),
    "no such output": (
        [((5,), 0, (), "may-alias")],
        "output {5} cannot lie in parameter 0: the result has no such array",
    ),
    "no such parameter": ([((0,), 7, (), "may-alias")], "the entry takes no such array"),
    "no such part": ([((0,), 2, (4,), "may-alias")], "parameter 2{4}"),
    "a whole tuple": ([((0,), 2, (), "may-alias")], "the entry takes no such array"),
    "two outputs of one parameter": (
        [((0,), 0, (), "may-alias"), ((1,), 0, (), "may-alias")],
        "parameter 0 is aliased already",
    ),
    "two parameters for one output": (
        [((0,), 0, (), "may-alias"), ((0,), 2, (1,), "must-alias")],
        "with parameter 0",
    ),
}
PAIRS = """HloModule m

ENTRY main {
  x = f32[8]{0} parameter(0)
  y = f32[3]{0} parameter(1)
  z = (f32[8]{0}, f32[8]{0}) parameter(2)
  g = f32[8]{0} get-tuple-element(z), index=0
  a = f32[8]{0} add(x, g)
  b = f32[8]{0} negate(x)
  ROOT r = (f32[8]{0}, f32[8]{0}) tuple(a, b)
}
"""


@pytest.mark.parametrize("what", BAD_ALIASES)
def test_bad_aliases(what: str) -> None:
    """Programs that were not verified: the same is said, with the numbers and what to change."""
    aliases, words = BAD_ALIASES[what]
    module, _, _ = compiled(PAIRS)
    module.header["input_output_alias"] = tuple(aliases)
    with pytest.raises(HeronError) as error:
        assign(module)
    assert error.value.code == "BUF006" and words in str(error.value) and error.value.hint


def test_good_aliases() -> None:
    text = PAIRS.replace("HloModule m", "HloModule m, input_output_alias={ {0}: (2, {1}, must-alias), {1}: (0, {}) }")
    inputs = [np.arange(n, dtype=np.float32) for n in (8, 3, 8, 8)]
    _, assignment, _ = assert_survives(text, inputs=inputs)
    assert assignment.parameter(2, (1,)).output == 0 and assignment.parameter(0).output == 1
    assert assignment.temp_bytes == 0


def test_what_is_given_up_for_nothing_is_told() -> None:
    text = "HloModule m, buffer_donor={ (0, {}), (1, {}) }\n\nENTRY main {\n  x = f32[8]{0} parameter(0)\n"
    _, assignment, _ = compiled(text + "  y = f32[5]{0} parameter(1)\n  ROOT n = f32[8]{0} negate(x)\n}\n")
    told = [line.strip() for line in report(assignment).splitlines() if "donated" in line]
    assert told == ["parameter 1 (20 B) is donated, but nothing takes its place"]


def test_memory_spaces_are_kept_apart() -> None:
    text = """HloModule spaces

ENTRY main {
  x = f32[1000]{0} parameter(0)
  a = f32[1000]{0:S(5)} copy(x)
  b = f32[1000]{0:S(5)} reverse(a), dimensions={0}
  c = f32[1000]{0} copy(b)
  d = f32[1000]{0} reverse(c), dimensions={0}
  ROOT e = f32[1000]{0} reverse(d), dimensions={0}
}
"""
    module, assignment, _ = assert_survives(text)
    at = {i.name: assignment.allocation_of(i) for i in module.entry.instructions}
    assert at["a"].name == at["b"].name == "temp S(5)" and at["a"].memory_space == 5
    assert {at[n].memory_space for n in "cde"} == {0}
    assert assignment.temp_bytes == assignment.peak_bytes == 4000
    assert assignment.host_bytes == 4032 + 4000
    assert assignment.temp is not None and assignment.temp.size == 4000


def test_every_value_is_listed_when_asked() -> None:
    _, assignment, _ = compiled(CHAIN)
    short, long = report(assignment), report(assignment, values=True)
    assert long.startswith(short) and all(f"    {name} " in long for name in "xabcde")


def test_a_branch_may_overwrite_what_another_reads() -> None:
    text = """HloModule m

yes {
  y = f32[64]{0} parameter(0)
  n = f32[64]{0} negate(y)
  ROOT m = f32[64]{0} exponential(n)
}

no {
  ROOT z = f32[64]{0} parameter(0)
}

ENTRY main {
  x = f32[64]{0} parameter(0)
  k = s32[] parameter(1)
  a = f32[64]{0} reverse(x), dimensions={0}
  c = f32[64]{0} conditional(k, a, a), branch_computations={yes, no}
  ROOT r = f32[64]{0} reverse(c), dimensions={0}
}
"""
    for k in (0, 1):
        inputs = [np.arange(64, dtype=np.float32), np.asarray(k, np.int32)]
        module, assignment, _ = assert_survives(text, inputs=inputs)
        assert copies(module) == 0 and assignment.temp_bytes == 256


def test_no_schedule() -> None:
    with pytest.raises(HeronError) as error:
        assign(parse(CHAIN))
    assert error.value.code == "BUF003" and error.value.hint


def test_the_check_notices_a_wrong_assignment() -> None:
    module, assignment, _ = compiled(CHAIN)
    at = {i.name: i for i in module.entry.instructions}
    x = np.arange(1000, dtype=np.float32)
    flow = assignment.flow
    assignment.slices[flow.value(at["b"])] = assignment.slices[flow.value(at["x"])]
    with pytest.raises(HeronError) as error:
        run_in_buffers(module, assignment, [x])
    assert error.value.code == "BUF007" and "parameter 0" in error.value.what


BESIDE = """HloModule beside, is_scheduled=true

work {
  p = f32[1000]{0} parameter(0)
  s = f32[1000]{0} sine(p)
  r = f32[1000]{0} reverse(s), dimensions={0}
  t = f32[1000]{0} reverse(r), dimensions={0}
  ROOT u = f32[1000]{0} reverse(t), dimensions={0}
}

ENTRY main {
  x = f32[1000]{0} parameter(0)
  start = ((f32[1000]{0}), f32[1000]{0}, u32[]) async-start(x), calls=work
  a = f32[1000]{0} cosine(x)
  b = f32[1000]{0} reverse(a), dimensions={0}
  done = f32[1000]{0} async-done(start)
  c = f32[1000]{0} reverse(b), dimensions={0}
  d = f32[1000]{0} reverse(c), dimensions={0}
  ROOT y = f32[1000]{0} add(d, done)
}
"""


def test_what_runs_asynchronously_keeps_its_memory_until_it_is_awaited() -> None:
    module = parse(BESIDE)
    found = assign(module, reuse_outputs=False)
    prove(found)
    at = {i.name: i for c in module.computations for i in c.instructions}
    places = {name: found.slice_of(at[name]) for name in "abcdrstu"}
    assert not any(places[inside].overlaps(places[beside]) for inside in "rstu" for beside in "ab")
    assert places["r"].overlaps(places["u"]) or places["s"].overlaps(places["t"])  # one after the other, as ever
    assert any(places[inside].overlaps(places[later]) for inside in "rst" for later in "cd")
    found.slices[found.flow.value(at["b"])] = places["r"]
    with pytest.raises(HeronError) as error:
        prove(found)
    assert error.value.code == "BUF008"


def test_small_values_take_their_bytes() -> None:
    """On a CPU values of a few bytes lie in one cache line; they begin where kernels expect numbers and vectors."""
    text = """HloModule small

ENTRY main {
  x = f32[] parameter(0)
  n = s32[3]{0} parameter(1)
  a = f32[] sine(x)
  p = pred[] compare(x, a), direction=LT
  m = s32[3]{0} reverse(n), dimensions={0}
  k = s32[3]{0} reverse(m), dimensions={0}
  b = f32[1000]{0} broadcast(a), dimensions={}
  c = f32[1000]{0} reverse(b), dimensions={0}
  z = f32[] constant(0)
  s = f32[] select(p, a, z)
  w = f32[1000]{0} broadcast(s), dimensions={}
  y = f32[1000]{0} add(c, w)
  i = s32[1]{0} slice(k), slice={[0:1]}
  j = s32[] reshape(i)
  ROOT d = f32[10]{0} dynamic-slice(y, j), dynamic_slice_sizes={10}
}
"""
    module, _, _ = compiled(text)
    assignment = assign(module, reuse_outputs=False)
    assert not misaligned(assignment) and 2 * 4000 < assignment.temp_bytes < 2 * 4032 + 64
    on_gpu = assign(module, alignment=128, reuse_outputs=False)
    assert all(s.offset % 128 == 0 for s in on_gpu.slices.values())
    assert_survives(text)
