from __future__ import annotations

import json

import numpy as np
import pytest

from heron.buffers import assign
from heron.buffers.check import run_in_buffers
from heron.errors import HeronError
from heron.hlo.text import parse
from tests.buffers.compiled import assert_survives, compiled

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
    assert assignment.temp_bytes == 4032 and assignment.output_bytes == 4000
    module, _, _ = compiled(CHAIN)
    assert assign(module, reuse_outputs=False).temp_bytes == 2 * 4032
    assert assign(module, alignment=256, reuse_outputs=False).temp_bytes == 2 * 4096


def test_elementwise_results_take_their_operands_place() -> None:
    text = CHAIN.replace("reverse(a), dimensions={0}", "negate(a)").replace("reverse(b), dimensions={0}", "negate(b)")
    module, assignment, _ = assert_survives(text)
    at = {i.name: i for i in module.entry.instructions}
    assert assignment.slice_of(at["a"]) == assignment.slice_of(at["b"]) == assignment.slice_of(at["c"])
    apart = assign(module, can_share=lambda i, operand, index: False)
    assert apart.slice_of(at["a"]) != apart.slice_of(at["b"])


def test_what_it_tells() -> None:
    module, assignment, _ = compiled(CHAIN)
    text = assignment.report()
    assert "parameter 0" in text and "output 0" in text and "temporaries at the peak" in text
    facts = json.loads(json.dumps(assignment.to_json()))
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


@pytest.mark.parametrize(
    ("alias", "word"),
    [("{ {}: (1, {}, may-alias) }", "bytes"), ("{ {0}: (0, {}, may-alias) }", "none such")],
)
def test_bad_aliases(alias: str, word: str) -> None:
    module, _, _ = compiled(
        CHAIN.replace("ENTRY main {", "ENTRY main {\n  y = f32[3]{0} parameter(1)"),
    )
    given = parse(f"HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }}\n\n{CHAIN.partition(chr(10))[2]}")
    assert given.header["input_output_alias"]
    index, number = ((0,), 0) if "{0}" in alias else ((), 1)
    module.header["input_output_alias"] = ((index, number, (), "may-alias"),)
    with pytest.raises(HeronError) as error:
        assign(module)
    assert error.value.code == "BUF006" and word in str(error.value)


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
