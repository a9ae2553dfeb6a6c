"""The evaluator itself: inputs checked, values watched, reducers of every kind, one device's view of collectives."""

from __future__ import annotations

import numpy as np
import pytest

from heron.errors import HeronError
from heron.evaluator import Evaluator, evaluate
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import make
from heron.hlo.ir.types import F32, S32
from heron.hlo.text import parse

SUMS = parse(
    """HloModule sums
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  pair = (f32[2,3], s32[]) parameter(0)
  x = f32[2,3] get-tuple-element(pair), index=0
  n = s32[] get-tuple-element(pair), index=1
  zero = f32[] constant(0)
  rows = f32[2] reduce(x, zero), dimensions={1}, to_apply=add
  both = (s32[], f32[2,3]) tuple(n, x)
  ROOT r = (f32[2], (s32[], f32[2,3])) tuple(rows, both)
}
"""
)
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_tuples_are_flat_outside_and_nested_inside() -> None:
    rows, n, x = evaluate(SUMS, X, np.int32(7).reshape(()))
    assert rows.tolist() == [3, 12] and n == 7 and x is X


@pytest.mark.parametrize(
    ("arrays", "code", "says"),
    [
        ((X,), "EVAL002", "takes 2 inputs, 1 given"),
        ((X.astype(np.float64), np.array(1, np.int32)), "EVAL003", "float64[2, 3]"),
        ((X.T, np.array(1, np.int32)), "EVAL003", "float32[3, 2]"),
        ((X, np.array(1, np.int64)), "EVAL003", "input 0[1]"),
    ],
)
def test_wrong_inputs_are_refused_with_the_numbers(arrays: tuple[np.ndarray, ...], code: str, says: str) -> None:
    with pytest.raises(HeronError) as caught:
        evaluate(SUMS, *arrays)
    assert caught.value.code == code and says in str(caught.value)


def test_values_can_be_watched() -> None:
    seen: dict[str, object] = {}
    Evaluator(SUMS, on_value=lambda i, value: seen.update({i.name: value})).run(X, np.array(7, np.int32))
    assert list(seen) == ["pair", "x", "n", "zero", "rows", "both", "r"]
    assert seen["rows"].tolist() == [3, 12]  # type: ignore[attr-defined]


def test_one_instruction_and_one_computation_can_be_run() -> None:
    p = make("parameter", (), shapes.row_major(F32, 2), number=0)
    i = make("add", [p, p])
    two = np.array([1, 2], np.float32)
    assert Evaluator().run_instruction(i, [two, two]).tolist() == [2, 4]
    assert Evaluator(SUMS).call(SUMS.computation("add"), np.float32(1), np.float32(2)) == 3
    with pytest.raises(HeronError, match="without a module"):
        Evaluator().run()


def test_results_are_arrays_even_of_rank_zero() -> None:
    (got,) = evaluate(parse("HloModule m\nENTRY e {\n a = s32[] constant(2147483647)\n ROOT b = s32[] add(a, a)\n}\n"))
    assert isinstance(got, np.ndarray) and got == -2


def test_no_input_is_ever_changed() -> None:
    text = """HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  u = f32[1] parameter(1)
  i = s32[] constant(2)
  ROOT r = f32[4] dynamic-update-slice(p, u, i)
}
"""
    p = np.zeros(4, np.float32)
    assert evaluate(parse(text), p, np.ones(1, np.float32))[0].tolist() == [0, 0, 1, 0]
    assert not p.any()


LOOPING = """HloModule m
more {
  s = (f32[], f32[], s32[]) parameter(0)
  k = s32[] get-tuple-element(s), index=2
  three = s32[] constant(3)
  ROOT c = pred[] compare(k, three), direction=LT
}
step {
  s2 = (f32[], f32[], s32[]) parameter(0)
  x = f32[] get-tuple-element(s2), index=0
  y = f32[] get-tuple-element(s2), index=1
  k2 = s32[] get-tuple-element(s2), index=2
  one = s32[] constant(1)
  next = s32[] add(k2, one)
  sum = f32[] add(x, y)
  ROOT t = (f32[], f32[], s32[]) tuple(sum, y, next)
}
three_times {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  z = s32[] constant(0)
  init = (f32[], f32[], s32[]) tuple(a, b, z)
  w = (f32[], f32[], s32[]) while(init), condition=more, body=step
  ROOT r = f32[] get-tuple-element(w), index=0
}
ENTRY e {
  p = f32[5] parameter(0)
  q = f32[5] parameter(1)
  ROOT m = f32[5] map(p, q), dimensions={0}, to_apply=three_times
}
"""


def test_a_scalar_computation_with_a_loop_runs_per_element() -> None:
    p, q = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    assert evaluate(parse(LOOPING), p, q)[0].tolist() == [3, 4, 5, 6, 7]


def _reduce(reducer: str, values: np.ndarray) -> np.ndarray:
    text = f"""HloModule m
f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
{reducer}
}}
ENTRY e {{
  p = f32[{values.size}] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={{0}}, to_apply=f
}}
"""
    return evaluate(parse(text), values)[0]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 1000])
def test_any_associative_reducer_keeps_the_order_of_elements(n: int) -> None:
    values = np.arange(1, n + 1, dtype=np.float32)
    last = "  z0 = f32[] constant(0)\n  d = pred[] compare(b, z0), direction=NE\n  ROOT c = f32[] select(d, b, a)"
    assert _reduce(last, values) == n
    assert _reduce("  m = f32[] maximum(a, b)\n  ROOT c = f32[] copy(m)", values) == n


def test_sums_do_not_lose_small_terms() -> None:
    values = np.full(1_000_000, 0.1, np.float32)
    got = _reduce("  ROOT c = f32[] add(a, b)", values)
    assert got == np.float32(values.astype(np.float64).sum())


def test_custom_calls_say_what_is_known() -> None:
    call = 'custom-call(p), custom_call_target="mine"'
    text = f"HloModule m\nENTRY e {{\n p = f32[] parameter(0)\n ROOT r = f32[] {call}\n}}\n"
    with pytest.raises(HeronError) as caught:
        evaluate(parse(text), np.array(1, np.float32))
    assert caught.value.code == "EVAL001"
    assert "'mine'" in str(caught.value) and "lapack_sgetrf_ffi" in str(caught.value)


@pytest.mark.parametrize("effect", ["", ", custom_call_has_side_effect=true"])
def test_custom_calls_that_nothing_uses(effect: str) -> None:
    """Those that only give a value are not made, as compiled programs do not make them."""
    call = f'custom-call(p), custom_call_target="mine"{effect}'
    module = parse(
        f"HloModule m\nENTRY e {{\n p = f32[] parameter(0)\n c = f32[] {call}\n ROOT r = f32[] negate(p)\n}}\n"
    )
    if effect:
        with pytest.raises(HeronError, match="EVAL001"):
            evaluate(module, np.array(1, np.float32))
    else:
        assert evaluate(module, np.array(1, np.float32)) == [-1]


COLLECTIVES = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  p = f32[4] parameter(0)
  r = f32[4] all-reduce(p), replica_groups=GROUPS, to_apply=add
  s = (f32[4], f32[4]) all-gather-start(r), replica_groups=GROUPS, dimensions={0}
  g = f32[4] all-gather-done(s)
  m = f32[4] collective-permute(g), source_target_pairs={PAIR}
  id = u32[] replica-id()
  f = f32[] convert(id)
  fs = f32[4] broadcast(f), dimensions={}
  ROOT t = f32[4] add(m, fs)
}
"""


def test_collectives_among_one_device() -> None:
    p = np.arange(4, dtype=np.float32)
    alone = COLLECTIVES.replace("GROUPS", "{{0}}")
    assert evaluate(parse(alone.replace("PAIR", "{0,0}")), p)[0].tolist() == [0, 1, 2, 3]
    assert evaluate(parse(alone.replace("PAIR", "")), p)[0].tolist() == [0, 0, 0, 0]
    for text in (alone.replace("PAIR", "{0,1}"), COLLECTIVES.replace("GROUPS", "{{0,1}}").replace("PAIR", "{0,0}")):
        with pytest.raises(HeronError) as caught:
            evaluate(parse(text), p)
        assert caught.value.code == "EVAL004" and caught.value.where


def test_async_copy_and_domain_ops_hand_values_on() -> None:
    text = """HloModule m
work {
  a = f32[2] parameter(0)
  ROOT b = f32[2] negate(a)
}
ENTRY e {
  p = f32[2] parameter(0)
  s = ((f32[2]), f32[2], u32[]) async-start(p), calls=work
  u = ((f32[2]), f32[2], u32[]) async-update(s)
  d = f32[2] async-done(u)
  c = (f32[2], f32[2], u32[]) copy-start(d)
  e = f32[2] copy-done(c)
  tok = token[] after-all()
  f = f32[2] add-dependency(e, tok)
  ROOT g = f32[2] opt-barrier(f)
}
"""
    assert evaluate(parse(text), np.array([1, 2], np.float32))[0].tolist() == [-1, -2]


def test_bitcast_reads_memory_in_the_layouts_given() -> None:
    text = """HloModule m
ENTRY e {
  p = f32[2,3]{0,1} parameter(0)
  ROOT b = f32[6]{0} bitcast(p)
}
"""
    assert evaluate(parse(text), X)[0].tolist() == [0, 3, 1, 4, 2, 5]


def test_evaluating_a_hand_built_computation() -> None:
    c = Computation("count")
    i = c.add("iota", (), shapes.row_major(S32, 3), iota_dimension=0)
    c.root = c.add("multiply", [i, i])
    assert Evaluator().call(c).tolist() == [0, 1, 4]


def test_calls_too_deep_are_refused() -> None:
    inner = "f0 {\n ROOT p0 = f32[] parameter(0)\n}\n"
    for n in range(1, 2000):
        inner += f"f{n} {{\n p{n} = f32[] parameter(0)\n ROOT r{n} = f32[] call(p{n}), to_apply=f{n - 1}\n}}\n"
    text = f"HloModule m\n{inner}ENTRY e {{\n p = f32[] parameter(0)\n ROOT r = f32[] call(p), to_apply=f1999\n}}\n"
    with pytest.raises(HeronError, match="EVAL010"):
        evaluate(parse(text), np.array(1, np.float32))


def test_memory_that_is_not_there_is_said_with_the_value_and_its_bytes() -> None:
    module = parse(
        "HloModule m\nENTRY e {\n  x = s32[] parameter(0)\n  b = s32[16777216,16777216] broadcast(x), dimensions={}\n"
        "  s = s32[16777216,16777216] add(b, b)\n  z = s32[] constant(0)\n"
        "  ROOT d = s32[1,1] dynamic-slice(s, z, z), dynamic_slice_sizes={1,1}\n}\n"
    )
    with pytest.raises(HeronError, match=r"no memory for the value of 's': 1,125,899,906,842,624 bytes") as found:
        evaluate(module, np.int32(3))
    assert found.value.code == "RUN010"
