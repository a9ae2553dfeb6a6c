"""Handlers get their arrays in the layouts that calls state, and what overwrites an operand lies as that does."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.backends.calls import ffi
from heron.buffers import assign
from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.calls.declaration import EVALUATOR
from heron.hlo.calls.declared import CALLS, takes_any_order
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework.checks import random_inputs
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from heron.passes.layout.layout_assignment import LayoutAssignment
from tests.backends.call_programs import handler, program


def check(module: Module, target: str, seed: int = 0) -> None:
    """What a program gives is what the evaluator says, and its layouts are sound after every pass."""
    inputs = [x % 50 if x.dtype.kind == "i" else x for x in random_inputs(module, seed)]
    executable = compile(module, target, options=Options(check="verify"))
    for n, (found, wanted) in enumerate(zip(executable.run(inputs), evaluate(module, *inputs), strict=True)):
        np.testing.assert_array_equal(found, wanted, f"output {n} of\n{module}")


@settings(max_examples=20)
@given(seed=st.integers(0, 100_000))
def test_generated(seed: int) -> None:
    module = program(seed)
    verify(module)
    check(module, "cpu", seed)


def test_generated_on_a_gpu() -> None:
    check(program(3), "sim:sm_90")


TWO_CALLS = """
HloModule m, entry_computation_layout={(s32[4,6]{1,0}, s32[6,4]{1,0})->(s32[4,6]{1,0}, s32[6,4]{1,0})}

ENTRY main {
  x = s32[4,6]{1,0} parameter(0)
  y = s32[6,4]{1,0} parameter(1)
  a = (s32[4,6]{0,1}) custom-call(x), custom_call_target="ONE", operand_layout_constraints={s32[4,6]{0,1}}ALIAS
  b = (s32[6,4]{0,1}) custom-call(y), custom_call_target="ONE", operand_layout_constraints={s32[6,4]{0,1}}ALIAS
  p = s32[4,6]{0,1} get-tuple-element(a), index=0
  q = s32[6,4]{0,1} get-tuple-element(b), index=0
  m = s32[4,6]{1,0} negate(p)
  n = s32[6,4]{1,0} negate(q)
  ROOT r = (s32[4,6]{1,0}, s32[6,4]{1,0}) tuple(m, n)
}
"""


@pytest.mark.parametrize("alias", ["", ", output_to_operand_aliasing={{0}: (0, {})}"])
def test_every_call_keeps_the_layouts_it_states(alias: str) -> None:
    """Also where the search of layout-assignment never comes to look at one."""
    text = TWO_CALLS.replace("ONE", handler([(1, 0), (1, 0)])).replace("ALIAS", alias)
    module = parse(text)
    LayoutAssignment().run(module, PassContext())
    calls = [i for i in module.instructions() if i.opcode == "custom-call"]
    assert [str(i.shape) for i in calls] == ["(s32[4,6]{0,1})", "(s32[6,4]{0,1})"]
    assert [str(i.operands[0].shape) for i in calls] == ["s32[4,6]{0,1}", "s32[6,4]{0,1}"]
    check(parse(text), "cpu")


def test_only_routines_of_our_own_take_any_order() -> None:
    """What may be somebody's handler is given arrays as the call states; markers call nobody."""
    for declared in CALLS:
        ours = declared.cpu not in ("", EVALUATOR) or declared.name == "marker"
        assert not declared.any_order or ours, declared.name
    (call,) = (i for i in parse(_call("my_handler")).instructions() if i.opcode == "custom-call")
    assert not takes_any_order(call)


def _call(target: str) -> str:
    return f'HloModule m\nENTRY e {{ x = f32[2] parameter(0)\n ROOT c = f32[2] custom-call(x), custom_call_target="{target}" }}'


def test_a_buffer_has_one_order() -> None:
    """A result that overwrites an operand which lies otherwise is refused, whatever let it come so far."""
    text = TWO_CALLS.replace("ONE", "any").replace("ALIAS", ", output_to_operand_aliasing={{0}: (0, {})}")
    module = parse(text)
    for name in ("copy-insertion", "memory-scheduler"):
        get(name).run(module, PassContext())
    with pytest.raises(HeronError) as error:
        assign(module)
    assert error.value.code == "BUF009" and "{1,0}" in str(error.value) and error.value.hint


def test_a_handler_refuses_what_lies_otherwise() -> None:
    """A pass that lost a layout is found where the call is lowered."""
    module = parse(TWO_CALLS.replace("ONE", "any").replace("ALIAS", ""))
    (call, *_) = (i for i in module.instructions() if i.opcode == "custom-call")
    with pytest.raises(HeronError) as error:
        ffi.lower(cast(Any, None), call, 0)
    assert error.value.code == "GEN018" and "s32[4,6]{0,1}" in str(error.value)
