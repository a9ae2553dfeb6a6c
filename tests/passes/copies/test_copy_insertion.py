"""Which copies there must be, and that the values survive in their buffers."""

from __future__ import annotations

import numpy as np
import pytest

from heron.errors import HeronError
from tests.buffers.compiled import FUSED, assert_survives, compiled, copies

CONDITION = """cond {
  cp = STATE parameter(0)
  ci = s32[] get-tuple-element(cp), index=0
  cn = s32[] constant(3)
  ROOT lt = pred[] compare(ci, cn), direction=LT
}
"""


def loop(body: str, init: str, vectors: int = 2, outer: str = "") -> str:
    """A module with a while over (counter, `vectors` × f32[4]) that returns its state. In `body` the state's parts are
    i, v1, v2, …; `init` starts v1, v2, … from a, b or what `outer` defines."""
    state = "(s32[], " + ", ".join(["f32[4]{0}"] * vectors) + ")"
    parts = "\n".join(f"  v{n} = f32[4]{{0}} get-tuple-element(p), index={n}" for n in range(1, vectors + 1))
    return f"""HloModule m

body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
{parts}
  one = s32[] constant(1)
  j = s32[] add(i, one)
{body.replace("STATE", state)}
}}

{CONDITION.replace("STATE", state)}
ENTRY main {{
  a = f32[4]{{0}} parameter(0)
  b = f32[4]{{0}} parameter(1)
  zero = s32[] constant(0)
{outer}
  init = {state} tuple(zero, {init})
  ROOT w = {state} while(init), condition=cond, body=body
}}
"""


LOOPS = {
    # state in place; the counter starts at a constant, v1 and v2 at parameters
    "update": ("  n = f32[4]{0} add(v1, v2)\n  ROOT t = STATE tuple(j, n, v2)", "a, b", 3),
    # a swap takes three copies a step
    "swap": ("  ROOT t = STATE tuple(j, v2, v1)", "a, b", 6),
    # both inits are the same value: nothing is swapped in truth
    "swap of one value": ("  ROOT t = STATE tuple(j, v2, v1)", "a, a", 3),
    # the new value is in two parts: one of them is a copy
    "same value twice": ("  n = f32[4]{0} negate(v1)\n  ROOT t = STATE tuple(j, n, n)", "a, b", 4),
    # v1 is read after n is made: the reader is put first, no copy in the loop
    "read late": (
        "  n = f32[4]{0} reverse(v1), dimensions={0}\n  m = f32[4]{0} add(v1, v2)\n  ROOT t = STATE tuple(j, n, m)",
        "a, b",
        None,
    ),
    "shifted": ("  n = f32[4]{0} add(v1, v2)\n  ROOT t = STATE tuple(j, v2, n)", "a, b", None),
    "constant state": ("  c = f32[4]{0} constant({1, 2, 3, 4})\n  ROOT t = STATE tuple(j, c, v1)", "a, b", None),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    body, init, wanted = LOOPS[name]
    module, _, _ = assert_survives(loop(body, init))
    if wanted is not None:
        assert copies(module) == wanted, str(module)


def test_swap_of_three() -> None:
    module, _, _ = assert_survives(
        loop("  ROOT t = STATE tuple(j, v2, v3, v1)", "a, b, s", 3, "  s = f32[4]{0} sine(a)")
    )
    body = next(c for c in module.computations if c.name == "body")
    assert sum(i.opcode == "copy" for i in body.instructions) == 4


def test_initial_value_read_after_the_loop_is_copied_only_then() -> None:
    outer = "  s = f32[4]{0} sine(a)"
    dead = loop("  n = f32[4]{0} negate(v1)\n  ROOT t = STATE tuple(j, n, v2)", "s, b", outer=outer)
    alive = dead.replace("ROOT w = ", "w = ").replace(
        "body=body\n}", "body=body\n  x = f32[4]{0} get-tuple-element(w), index=1\n  ROOT r = f32[4]{0} add(s, x)\n}"
    )
    assert copies(assert_survives(dead)[0]) == 2  # the counter's zero, and b on its way out
    assert copies(assert_survives(alive)[0]) == 2  # the counter's zero, and s


def update(extra: str = "", root: str = "ROOT r = f32[4]{0} add(d, d)") -> str:
    return f"""HloModule m

ENTRY main {{
  a = f32[4]{{0}} parameter(0)
  u = f32[2]{{0}} parameter(1)
  k = s32[] parameter(2)
  x = f32[4]{{0}} sine(a)
  d = f32[4]{{0}} dynamic-update-slice(x, u, k)
{extra}
  {root}
}}
"""


def test_update_of_a_dead_value_is_in_place() -> None:
    assert copies(assert_survives(update())[0]) == 0


def test_reader_of_the_old_value_runs_first() -> None:
    text = update("  n = f32[4]{0} reverse(x), dimensions={0}", "ROOT r = f32[4]{0} add(n, d)")
    module, _, _ = assert_survives(text)
    writer = next(i for i in module.entry.instructions if i.opcode == "dynamic-update-slice")
    assert copies(module) == 0 and [p.opcode for p in writer.control_predecessors] == ["reverse"]


def test_reader_of_old_and_new_forces_a_copy() -> None:
    assert copies(assert_survives(update(root="ROOT r = f32[4]{0} add(x, d)"))[0]) == 1


def test_update_of_a_parameter_is_copied_unless_donated() -> None:
    text = update(root="ROOT r = f32[4]{0} dynamic-update-slice(a, u, k)")
    module, assignment, _ = assert_survives(text)
    assert copies(module) == 1 and assignment.output_bytes == 16
    donated = text.replace("HloModule m", "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }")
    module, assignment, _ = assert_survives(donated)
    assert copies(module) == 0
    assert assignment.outputs[0] == assignment.slice_of(module.entry.parameters[0])


def test_outputs() -> None:
    text = """HloModule m

ENTRY main {
  a = f32[4]{0} parameter(0)
  c = f32[4]{0} constant({1, 2, 3, 4})
  s = f32[4]{0} sine(a)
  ROOT t = (f32[4]{0}, f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(a, c, s, s)
}
"""
    module, assignment, ctx = assert_survives(text)
    assert copies(module) == 3 and len({s.allocation for s in assignment.outputs}) == 4
    reasons = {d.reason for d in ctx.trace.decisions if d.rule == "copy-insertion" and not d.ok}
    assert reasons == {
        "copied: parameter 'a' belongs to the caller",
        "copied: 'c' is a constant",
        "copied: 's' is an output already",
    }


def test_branches_write_the_result() -> None:
    text = """HloModule m

one {
  x = f32[4]{0} parameter(0)
  ROOT n = f32[4]{0} negate(x)
}

two {
  y = f32[4]{0} parameter(0)
  ROOT z = f32[4]{0} bitcast(y)
}

ENTRY main {
  k = pred[] parameter(0)
  a = f32[4]{0} parameter(1)
  ROOT r = f32[4]{0} conditional(k, a, a), branch_computations={one, two}
}
"""
    for k in (True, False):
        module, _, _ = assert_survives(text, inputs=[np.asarray(k), np.arange(4, dtype=np.float32)])
        assert copies(module) == 1


def test_shared_computations_get_clones() -> None:
    text = loop("  n = f32[4]{0} add(v1, v2)\n  ROOT t = STATE tuple(j, n, v2)", "a, b")
    state = "(s32[], f32[4]{0}, f32[4]{0})"
    twice = text.replace("ROOT w = ", "w = ").replace(
        "body=body\n}", f"body=body\n  ROOT w2 = {state} while(w), condition=cond, body=body\n}}"
    )
    module, _, _ = assert_survives(twice)
    assert len(module.computations) == 5


def test_missing_copies_are_reported_not_miscompiled() -> None:
    with pytest.raises(HeronError) as error:
        compiled(loop("  ROOT t = STATE tuple(j, v2, v1)", "a, b"), ["memory-scheduler"])
    assert error.value.code == "BUF005"


def test_kernels_without_inputs_run_again_instead_of_being_copied() -> None:
    outer = "  c = f32[] constant(2)\n  z = f32[4]{0} broadcast(c), dimensions={}"
    text = loop(
        "  n = f32[4]{0} negate(v1)\n  m = f32[4]{0} add(v2, n)\n  ROOT t = STATE tuple(j, n, m)", "z, z", outer=outer
    )
    module, _, _ = assert_survives(text, [name for name in FUSED if name != "copy-fusion"])
    made = [i for i in module.entry.instructions if i.opcode == "fusion" and not i.operands]
    assert len(made) == 2 and copies(module) == 1  # the counter's zero
