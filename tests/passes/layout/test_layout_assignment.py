from __future__ import annotations

from typing import Any

import pytest

from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import tuple_
from heron.hlo.text import parse
from heron.hlo.verifier import VerifierOptions, verify
from heron.passes.framework.context import PassContext
from heron.passes.layout.layout_assignment import LayoutAssignment
from heron.passes.layout.layout_normalization import LayoutNormalization
from heron.passes.layout.model import orders, relations
from heron.passes.layout.move_copy_to_users import MoveCopyToUsers
from heron.passes.layout.reshape_decomposer import ReshapeDecomposer
from tests.support import program

STEPS = (LayoutAssignment(), ReshapeDecomposer(), MoveCopyToUsers(), LayoutNormalization())


def laid_out(text: str) -> tuple[Module, PassContext]:
    """The module with layouts, which verify, and what was decided."""
    module, ctx = parse(text), PassContext()
    LayoutAssignment().run(module, ctx)
    verify(module, VerifierOptions(layout_sensitive=True))
    assert not LayoutAssignment().run(module, PassContext())
    return module, ctx


def opcodes(module: Module) -> list[str]:
    return [i.opcode for i in module.entry.post_order() if i.opcode not in ("parameter", "tuple")]


@pytest.mark.parametrize("name", ["transpose_chain", "linalg_lapack", "heat_while", "flax_cnn_grad", "fft"])
def test_everything_computed_is_row_major_in_the_end(name: str) -> None:
    module = parse(program(name).read_text())
    seen = module.parameter_shapes, module.result_shape
    for step in STEPS:
        step.run(module, PassContext())
    verify(module, VerifierOptions(layout_sensitive=True))
    handed_on = "parameter tuple get-tuple-element bitcast while conditional call custom-call fft".split()
    for i in module.instructions():
        if i.opcode not in handed_on:
            assert i.shape is i.shape.with_default_layout(), str(i)
    assert (module.parameter_shapes, module.result_shape) == seen
    assert not any(step.run(module, PassContext()) for step in STEPS[1:])


def test_transposes_at_the_edge_are_views() -> None:
    module = parse("""HloModule m, entry_computation_layout={(f32[2,3,4]{0,2,1})->f32[4,2,3]{1,2,0}}

ENTRY main {
  x = f32[2,3,4]{2,1,0} parameter(0)
  t = f32[3,4,2]{2,1,0} transpose(x), dimensions={1,2,0}
  n = f32[3,4,2]{2,1,0} negate(t)
  ROOT u = f32[4,2,3]{2,1,0} transpose(n), dimensions={1,2,0}
}
""")
    for step in STEPS:
        step.run(module, PassContext())
    assert opcodes(module) == ["bitcast", "negate", "transpose", "bitcast"]
    assert module.entry.root.operands[0].shape.dims == (4, 3, 2)


def test_a_root_that_only_says_so_gets_its_layout() -> None:
    module, _ = laid_out("""HloModule m, entry_computation_layout={(f32[2,3]{1,0})->((f32[2,3]{0,1}))}

ENTRY main {
  x = f32[2,3]{1,0} parameter(0)
  n = f32[2,3]{1,0} negate(x)
  t = (f32[2,3]{0,1}) tuple(n)
  ROOT r = ((f32[2,3]{0,1})) tuple(t)
}
""")
    assert module.entry.root.operands[0].operands[0].opcode == "copy"


def test_two_transposes_are_undone_by_what_stands_between() -> None:
    module, ctx = laid_out("""HloModule m

ENTRY main {
  x = f32[64,32] parameter(0)
  b = f32[64] parameter(1)
  t = f32[32,64] transpose(x), dimensions={1,0}
  e = f32[32,64] exponential(t)
  w = f32[32,64] broadcast(b), dimensions={1}
  a = f32[32,64] add(e, w)
  u = f32[64,32] transpose(a), dimensions={1,0}
  ROOT s = f32[64,32] tanh(u)
}
""")
    LayoutNormalization().run(module, ctx)
    assert opcodes(module) == ["exponential", "broadcast", "add", "tanh"]
    decision = next(d for d in ctx.trace.decisions if d.ok)
    assert decision.cost_before == 2 * 64 * 32 * 4 and decision.cost_after == 0


def test_a_product_gives_its_matrix_transposed_for_nothing() -> None:
    module, ctx = laid_out("""HloModule m

ENTRY main {
  x = f32[64,32] parameter(0)
  y = f32[32,16] parameter(1)
  d = f32[64,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[64,16] exponential(d)
  ROOT t = f32[16,64] transpose(e), dimensions={1,0}
}
""")
    LayoutNormalization().run(module, ctx)
    assert opcodes(module) == ["dot", "exponential"]
    assert [o.name for o in next(i for i in module.entry.instructions if i.opcode == "dot").operands] == ["y", "x"]


def test_what_is_smaller_is_copied() -> None:
    module, ctx = (
        laid_out("""HloModule m, entry_computation_layout={(f32[64,32]{0,1}, f32[64,32]{0,1}, f32[64,32]{1,0})->f32[64,32]{0,1}}

ENTRY main {
  x = f32[64,32]{0,1} parameter(0)
  y = f32[64,32]{0,1} parameter(1)
  z = f32[64,32] parameter(2)
  a = f32[64,32] add(x, y)
  ROOT m = f32[64,32] multiply(a, z)
}
""")
    )  # noqa: E501
    copies = [i for i in module.entry.instructions if i.opcode == "copy"]
    assert [i.operands[0].name for i in copies] == ["z"]
    assert any("copied for m" in d.reason and d.subject == "z" for d in ctx.trace.decisions)


def test_the_state_of_a_loop_lies_as_its_body_likes() -> None:
    module, ctx = laid_out("""HloModule m

more {
  p = (s32[], f32[16,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  ten = s32[] constant(10)
  ROOT c = pred[] compare(n, ten), direction=LT
}

body {
  p = (s32[], f32[16,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  m = s32[] add(n, one)
  x = f32[16,64] get-tuple-element(p), index=1
  y = f32[16,64] sine(x)
  ROOT r = (s32[], f32[16,64]) tuple(m, y)
}

ENTRY main {
  x = f32[64,16] parameter(0)
  t = f32[16,64] transpose(x), dimensions={1,0}
  zero = s32[] constant(0)
  s = (s32[], f32[16,64]) tuple(zero, t)
  w = (s32[], f32[16,64]) while(s), condition=more, body=body
  y = f32[16,64] get-tuple-element(w), index=1
  ROOT u = f32[64,16] transpose(y), dimensions={1,0}
}
""")
    loop = next(i for i in module.entry.instructions if i.opcode == "while")
    assert "{0,1}" in str(loop.shape)
    LayoutNormalization().run(module, ctx)
    assert not any(i.opcode in ("transpose", "copy") for i in module.instructions())


def test_contradictions_are_errors_that_name_both_sides() -> None:
    text = """HloModule m

ENTRY main {
  x = f32[4,8]{1,0} parameter(0)
  ROOT c = f32[4,8]{0,1} custom-call(x), custom_call_target="unknown", operand_layout_constraints={f32[4,8]{1,0}}, OTHER
}
"""
    alias = text.replace("OTHER", "output_to_operand_aliasing={{}: (0, {})}")
    with pytest.raises(HeronError, match="PASS023") as found:
        LayoutAssignment().run(parse(alias), PassContext())
    assert "f32[4,8]{0,1}" in str(found.value) and "f32[4,8]{1,0}" in str(found.value)
    tiles = text.replace(", OTHER", "").replace("f32[4,8]{1,0}}", "f32[4,8]{1,0:T(8,128)}}")
    with pytest.raises(HeronError, match="PASS023") as found:
        LayoutAssignment().run(parse(tiles), PassContext())
    assert "T(8,128)" in str(found.value)


def test_results_without_a_layout_get_the_best_one() -> None:
    module = parse("""HloModule m
ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  t = f32[3,2]{1,0} transpose(x), dimensions={1,0}
  n = f32[3,2]{1,0} negate(t)
  ROOT r = (f32[3,2]{1,0}, f32[3,2]{1,0}) tuple(t, n)
}""")
    free = module.result_shape.at((0,)).with_layout(None)
    module.entry_layout = module.parameter_shapes, tuple_([free, free])
    assert LayoutAssignment().run(module, PassContext())
    verify(module, VerifierOptions(layout_sensitive=True))
    assert module.entry_layout is not None and module.entry_layout[1] == module.entry.root.shape
    assert str(module.entry.root.shape) == "(f32[3,2]{0,1}, f32[3,2]{0,1})"


def test_a_single_result_without_a_layout() -> None:
    module = parse("""HloModule m
ENTRY e {
  x = f32[2,3]{1,0} parameter(0)
  ROOT t = f32[3,2]{1,0} transpose(x), dimensions={1,0}
}""")
    module.entry_layout = module.parameter_shapes, module.result_shape.with_layout(None)
    LayoutAssignment().run(module, PassContext())
    assert module.entry_layout is not None and str(module.entry_layout[1]) == "f32[3,2]{0,1}"
    assert [i.opcode for i in module.entry.instructions] == ["parameter", "transpose"]


def _swept(rows: str, row: str, part: str, turned: str, dims: str) -> str:
    """A loop that adds up the rows of a transposed parameter, and stores each sum as a row."""
    state = f"(s32[], f32[{row}], f32[{rows}], f32[{rows}])"
    at = ", ".join(["n", *["zero"] * part.count(",")])
    return f"""HloModule m

step {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  sum = f32[{row}] get-tuple-element(s), index=1
  x = f32[{rows}] get-tuple-element(s), index=2
  y = f32[{rows}] get-tuple-element(s), index=3
  zero = s32[] constant(0)
  one = s32[] constant(1)
  next = s32[] add(n, one)
  part = f32[{part}] dynamic-slice(x, {at}), dynamic_slice_sizes={{{part}}}
  flat = f32[{row}] reshape(part)
  added = f32[{row}] add(sum, flat)
  update = f32[{part}] reshape(added)
  stored = f32[{rows}] dynamic-update-slice(y, update, {at})
  ROOT t = {state} tuple(next, added, x, stored)
}}

more {{
  s = {state} parameter(0)
  n = s32[] get-tuple-element(s), index=0
  most = s32[] constant(50)
  ROOT p = pred[] compare(n, most), direction=LT
}}

ENTRY main {{
  given = f32[{turned}] parameter(0)
  x = f32[{rows}] transpose(given), dimensions={{{dims}}}
  zero = f32[] constant(0)
  none = s32[] constant(0)
  first = f32[{row}] broadcast(zero), dimensions={{}}
  y = f32[{rows}] broadcast(zero), dimensions={{}}
  s = {state} tuple(none, first, x, y)
  w = {state} while(s), condition=more, body=step
  all = f32[{rows}] get-tuple-element(w), index=3
  ROOT r = f32[{turned}] transpose(all), dimensions={{{dims}}}
}}
"""


def _loop_state(text: str) -> list[str]:
    """The arrays of most dimensions in the loop's state."""
    module, _ = laid_out(text)
    (loop,) = [i for i in module.entry.instructions if i.opcode == "while"]
    leaves = [leaf for _, leaf in loop.shape.leaves()]
    return [str(leaf) for leaf in leaves if leaf.rank == max(x.rank for x in leaves)]


def test_rows_that_a_loop_steps_through_lie_in_one_piece() -> None:
    """Turned, a row's elements would each be in a line of memory of its own."""
    assert _loop_state(_swept("50,40", "40", "1,40", "40,50", "1,0")) == ["f32[50,40]{1,0}"] * 2


def test_a_loop_steps_through_pieces_as_long_as_a_line_in_any_order() -> None:
    """The transposes then move nothing."""
    assert _loop_state(_swept("50,8,16", "8,16", "1,8,16", "8,50,16", "1,0,2")) == ["f32[50,8,16]{2,0,1}"] * 2


def mixed(steps: int) -> str:
    """A tensor network in small: each step adds an array to itself with two dimensions exchanged."""
    lines = ["  a0 = f32[8,8,8,8] parameter(0)"]
    for k in range(steps):
        dims = ("1,2,3,0", "1,0,2,3", "0,2,1,3", "0,1,3,2")[k % 4]
        lines.append(f"  t{k} = f32[8,8,8,8] transpose(a{k}), dimensions={{{dims}}}")
        lines.append(f"  {'ROOT ' if k == steps - 1 else ''}a{k + 1} = f32[8,8,8,8] add(t{k}, a{k})")
    return "\n".join(["HloModule m", "ENTRY e {", *lines, "}"])


def test_the_search_compares_each_pair_of_orders_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for the same costs again and again; comparisons grow with the program, not with its square."""
    compared: list[object] = []

    def same_place(*args: Any) -> bool:
        compared.append(args)
        return orders.same_place(*args)

    monkeypatch.setattr(relations, "same_place", same_place)
    counts: list[int] = []
    for steps in (20, 60):
        compared.clear()
        laid_out(mixed(steps))
        counts.append(len(compared))
    assert 0 < counts[1] < 4 * counts[0]
