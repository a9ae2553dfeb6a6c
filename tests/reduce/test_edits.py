"""Each kind of edit: what it takes away, and that what is left is a valid program with inputs that fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from heron.cli import values
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.reduce.case import Case
from heron.reduce.draft import Draft
from heron.reduce.edits import KINDS, Kind
from heron.reduce.recorded import Recorded
from tests.support import counting_loop, program

BY_NAME = {k.name: k for k in KINDS}

CHAIN = """HloModule chain
ENTRY e {
  x = f32[4,6] parameter(0)
  y = f32[4,6] parameter(1)
  a = f32[4,6] tanh(x)
  b = f32[4,6] add(a, y)
  c = f32[4,6] exponential(b)
  ROOT t = (f32[4,6], f32[4,6]) tuple(c, a)
}
"""
CARRYING = """HloModule carrying, num_partitions=2, frontend_attributes={a="b"}
ENTRY e {
  x = f32[4] parameter(0), sharding={replicated}, metadata={op_name="x"}
  a = f32[4] negate(x), metadata={op_name="f/neg"}
  ROOT b = f32[4] abs(x), control-predecessors={a}, frontend_attributes={c="d"}
}
"""
BRANCHES = """HloModule branches
one {
  p = f32[4] parameter(0)
  ROOT n = f32[4] negate(p)
}
other {
  p = f32[4] parameter(0)
  ROOT n = f32[4] abs(p)
}
ENTRY e {
  c = pred[] parameter(0)
  x = f32[4] parameter(1)
  y = f32[4] parameter(2)
  ROOT r = f32[4] conditional(c, x, y), true_computation=one, false_computation=other
}
"""


def case_of(text: str) -> Case:
    module = parse(text, verify=True)
    return Case(module, tuple(values.random(module, 0)))


def edited(case: Case, kind: str, atoms: Sequence[str]) -> Case | None:
    draft = Draft(case, Recorded(case.module, case.inputs))
    return draft.finish() if BY_NAME[kind].apply(draft, atoms) else None


def opcodes(case: Case | None) -> list[str]:
    assert case is not None
    return [i.opcode for i in case.module.entry.post_order()]


def test_a_window_computes_what_it_did_in_the_whole_program() -> None:
    case = case_of(CHAIN)
    small = edited(case, "window", ["b", "c"])
    assert opcodes(small) == ["parameter", "parameter", "add", "exponential"]
    np.testing.assert_array_equal(evaluate(small.module, *small.inputs)[0], evaluate(case.module, *case.inputs)[0])


def test_a_cut_value_is_an_input_with_what_it_was() -> None:
    case = case_of(CHAIN)
    small = edited(case, "cut", ["a"])
    assert sorted(opcodes(small)) == ["add", "exponential", "parameter", "parameter", "tuple"]
    for ours, theirs in zip(evaluate(small.module, *small.inputs), evaluate(case.module, *case.inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_outputs_go() -> None:
    assert opcodes(edited(case_of(CHAIN), "outputs", ["0"])) == ["parameter", "tanh"]


def test_a_bypass_hands_on_an_operand() -> None:
    assert "exponential" not in opcodes(edited(case_of(CHAIN), "bypass", ["c/0"]))


def test_a_loop_becomes_its_body_once() -> None:
    case = case_of(counting_loop(10, 4))
    small = edited(case, "inline", ["loop/1"])
    assert "while" not in opcodes(small) and opcodes(small).count("tanh") == 1


def test_a_loop_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was computed by then is kept; the rest is random, and of the right shape."""
    monkeypatch.setattr("heron.reduce.recorded.MAX_SECONDS", 0.2)
    module = parse(
        counting_loop(1 << 30, 4).replace("ROOT loop", "loop").rstrip("}\n")
        + "\n  r = f32[4] get-tuple-element(loop), index=1\n  ROOT s = f32[4] abs(r)\n}\n",
        verify=True,
    )
    recorded = Recorded(module, [np.full(4, 0.5, np.float32)])
    by_name = {i.name: i for i in module.instructions()}
    np.testing.assert_array_equal(
        recorded.of("x.1" if "x.1" in by_name else "x", by_name["y"].shape), np.full((1, 4), 0.5)
    )
    assert [a.shape for a in recorded.of("s", by_name["s"].shape)] == [(4,)]


def test_a_branch_takes_the_place_of_its_conditional() -> None:
    case = case_of(BRANCHES)
    assert opcodes(edited(case, "inline", ["r/0"])) == ["parameter", "negate"]
    assert opcodes(edited(case, "inline", ["r/1"])) == ["parameter", "abs"]


def test_loops_run_once() -> None:
    case = case_of(counting_loop(10, 4))
    small = edited(case, "trips", ["n"])
    assert small is not None
    (rounds, _) = evaluate(small.module, *small.inputs)
    assert rounds == 1


def test_sizes_shrink_together() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[2,12,64] parameter(0)
  r = f32[2,768] reshape(x)
  w = f32[768,64] parameter(1)
  d = f32[2,64] dot(r, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT s = f32[2,32] slice(d), slice={[0:2], [0:32]}
}
"""
    small = edited(case_of(text), "shapes", ["32/1"])
    assert small is not None
    assert [str(i.shape.bare) for i in small.module.entry.post_order()] == [
        "f32[2,12,2]",
        "f32[2,24]",
        "f32[24,2]",
        "f32[2,2]",
        "f32[2,1]",
    ]
    assert [x.shape for x in small.inputs] == [(2, 12, 2), (24, 2)]


def test_called_computations_get_zeros() -> None:
    case = case_of(counting_loop(3, 4))
    small = edited(case, "zeros", ["y"])
    assert small is not None and not any(i.opcode == "tanh" for i in small.module.instructions())


@pytest.mark.parametrize("kind", KINDS, ids=lambda k: k.name)
def test_edits_of_real_programs_give_programs_that_run(kind: Kind) -> None:
    """The first and the last atom, and all: what comes out verifies, and the evaluator takes the inputs."""
    made = 0
    names = ("cond_switch", "heat_while", "layernorm", "sort_topk", "conv_variants")
    for text in (CARRYING, *(program(name).read_text() for name in names)):
        case = case_of(text)
        recorded = Recorded(case.module, case.inputs)
        atoms = kind.atoms(case.module)
        for some in (atoms[:1], atoms[-1:], atoms[: None if kind.together != 1 else 1]):
            if not some:
                continue
            draft = Draft(case, recorded)
            try:
                small = draft.finish() if kind.apply(draft, some) else None
            except Exception:  # as the search has it: no candidate
                continue
            if small is not None:
                made += 1
                evaluate(parse(small.text, verify=True), *small.inputs)
    assert made
