from __future__ import annotations

import pytest

from heron import targets
from heron.analysis.cost import bytes_read, bytes_written, flops
from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.analysis.cost.program import program_cost
from heron.backends.compiler import Compilation
from heron.compiling import compile
from heron.hlo.text import parse
from heron.options import Options
from heron.trace import Trace
from tests.support import counting_loop, program

_LESS = """
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
"""


def last(line: str, parameters: str):  # noqa: ANN201
    given = "\n".join(f"  {p.split()[1]} = {p.split()[0]} parameter({n})" for n, p in enumerate(parameters.split("; ")))
    return parse(f"HloModule m\n{_LESS if 'less' in line else ''}\nENTRY e {{\n{given}\n  ROOT {line}\n}}\n").entry.root


def test_dot_and_elementwise() -> None:
    dot = last(
        "d = f32[4,16]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "f32[4,8]{1,0} x; f32[8,16]{1,0} y",
    )
    assert flops(dot) == 2 * 4 * 8 * 16
    assert (bytes_read(dot), bytes_written(dot)) == ((32 + 128) * 4, 64 * 4)
    assert flops(last("a = f32[8]{0} add(x, x)", "f32[8]{0} x")) == 8
    assert flops(last("e = f32[8]{0} exponential(x)", "f32[8]{0} x")) > 40
    whole, real = (flops(last(f"r = {t}[8]{{0}} remainder(x, x)", f"{t}[8]{{0}} x")) for t in ("s32", "f32"))
    assert whole > 3 * real > 3 * 8 * 40  # one number after the other; a function of some thirty instructions


SHARED = """
HloModule shared

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY e {
  x = f32[20,2] parameter(0)
  a = f32[20,20,2] broadcast(x), dimensions={1,2}
  b = f32[20,20,2] broadcast(x), dimensions={0,2}
  d = f32[20,20,2] subtract(a, b)
  c = f32[] constant(5)
  cs = f32[20,20,2] broadcast(c), dimensions={}
  r = f32[20,20,2] remainder(d, cs)
  s = f32[20,20,2] multiply(r, r)
  z = f32[] constant(0)
  n = f32[20,20] reduce(s, z), dimensions={2}, to_apply=add
  w = f32[20,20] tanh(n)
  ws = f32[20,20,2] broadcast(w), dimensions={0,1}
  f = f32[20,20,2] multiply(r, ws)
  ROOT t = f32[20,2] reduce(f, z), dimensions={0}, to_apply=add
}
"""


def test_remainders_of_floats_are_kept_for_a_second_kernel() -> None:
    fused = compile(parse(SHARED), "cpu").stage("fused")
    assert fused.count(" remainder(") == 1


REMAINDERS = """HloModule m

ENTRY e {{
  x = {t}[100000] parameter(0)
  y = {t}[100000] parameter(1)
  k = {t}[] constant(97)
  c = {t}[100000] broadcast(k), dimensions={{}}
  m = {t}[100000] remainder(x, {divisor})
  a = {t}[99999] slice(m), slice={{[0:99999]}}
  b = {t}[99999] slice(m), slice={{[1:100000]}}
  ROOT r = {t}[99999] add(a, b)
}}
"""


@pytest.mark.parametrize(
    ("t", "divisor", "kernels"), [("s32", "c", 1), ("s32", "y", 2), ("u64", "c", 2), ("u64", "y", 2)]
)
def test_divisions_of_integers_are_done_once(t: str, divisor: str, kernels: int) -> None:
    """But for those of 32 bits by a number, which vectors do by a product."""
    fused = compile(parse(REMAINDERS.format(t=t, divisor=divisor)), "cpu").stage("fused")
    assert fused.count(" fusion(") == kernels


UPDATED = """
HloModule m

body {{
  p = f32[{n}]{{0}} parameter(0)
  u = f32[4]{{0}} parameter(1)
  k = s32[] parameter(2)
  m = f32[4]{{0}} negate(u)
  ROOT d = f32[{n}]{{0}} dynamic-update-slice(p, m, k)
}}

ENTRY e {{
  x = f32[{n}]{{0}} parameter(0)
  y = f32[4]{{0}} parameter(1)
  k = s32[] parameter(2)
  ROOT f = f32[{n}]{{0}} fusion(x, y, k), kind=kLoop, calls=body
}}
"""


def test_updates_and_slices_touch_only_their_part() -> None:
    update = last("d = f32[100]{0} dynamic-update-slice(x, u, i)", "f32[100]{0} x; f32[4]{0} u; s32[] i")
    assert (bytes_read(update), bytes_written(update), flops(update)) == (16 + 4, 16, 4)
    assert bytes_read(last("s = f32[4]{0} slice(x), slice={[0:4]}", "f32[100]{0} x")) == 16
    for rows in (100, 100_000):
        fused = parse(UPDATED.format(n=rows)).entry.root
        assert kernel_cost(fused).flops == 4 + 4


FUSED = """
HloModule m

body {
  p = f32[64,128]{1,0} parameter(0)
  q = f32[128]{0} parameter(1)
  e = f32[128]{0} exponential(q)
  b = f32[64,128]{1,0} broadcast(e), dimensions={1}
  m = f32[64,128]{1,0} multiply(p, p)
  ROOT r = f32[64,128]{1,0} add(m, b)
}

ENTRY e {
  x = f32[64,128]{1,0} parameter(0)
  y = f32[128]{0} parameter(1)
  ROOT f = f32[64,128]{1,0} fusion(x, y), kind=kLoop, calls=body
}
"""


def test_a_fusion_counts_what_it_computes_again_and_reads_again() -> None:
    cost = kernel_cost(parse(FUSED).entry.root)
    assert cost.transcendentals == 64 * 128  # one exponential for every element of the broadcast, not one a column
    assert {r.operand: (r.distinct, r.total) for r in cost.reads} == {
        "x": (32768.0, 32768.0),  # read twice at the same index: once
        "y": (512.0, 32768.0),
    }
    assert (cost.written, cost.work_items, cost.unit) == (32768.0, 8192.0, "f32")


def test_rows_taken_by_a_gather_use_whole_transactions_single_numbers_do_not() -> None:
    rows = last(
        "g = f32[10,64]{1,0} gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},"
        " index_vector_dim=1, slice_sizes={1,64}",
        "f32[1000,64]{1,0} x; s32[10,1]{1,0} i",
    )
    numbers = last(
        "g = f32[10]{0} gather(x, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0},"
        " index_vector_dim=1, slice_sizes={1}",
        "f32[1000]{0} x; s32[10,1]{1,0} i",
    )
    assert [kernel_cost(i).reads[0].used for i in (rows, numbers)] == [1.0, 0.125]
    assert kernel_cost(rows).reads[0].distinct == 2560


def test_estimates_name_what_limits_a_kernel() -> None:
    h200 = targets.get("sm_90")
    large = "f32[4096,4096]{1,0}"
    copied = estimate(kernel_cost(last(f"n = {large} negate(x)", f"{large} x")), h200)
    assert copied.bound == "memory" and copied.fraction > 0.9
    assert abs(copied.memory - 2 * 4096 * 4096 * 4 / 4.8e12) < 1e-9
    product = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    dot = estimate(kernel_cost(last(f"d = {large} dot(x, y), {product}", f"{large} x; {large} y")), h200)
    assert dot.bound == "compute" and 0.75 < dot.fraction < 0.85
    assert estimate(kernel_cost(last("n = f32[4]{0} negate(x)", "f32[4]{0} x")), h200).bound == "launch"


def test_few_elements_cannot_use_the_whole_machine() -> None:
    h200 = targets.get("sm_90")
    small, large = (
        estimate(kernel_cost(last(f"r = f32[{n}]{{0}} negate(x)", f"f32[{n}]{{0}} x")), h200) for n in (512, 1 << 26)
    )
    assert small.memory / 512 > 5 * large.memory / (1 << 26)


def test_a_program_counts_loops_by_their_trips_and_a_branch_once() -> None:
    text = counting_loop(10, 8)
    cost = program_cost(parse(text), targets.get("sm_90"))
    assert {s.cost.opcode: (s.runs, s.known) for s in cost.steps} == {"add": (10, True), "tanh": (10, True)}
    assert cost.launches == 20 and cost.seconds >= 20e-6
    cost = program_cost(parse(text), targets.get("x86-64-v3"))  # whose loops are not counted by what drives them
    assert {s.cost.opcode: s.runs for s in cost.steps} == {"compare": 11, "add": 10, "tanh": 10}


def test_small_kernels_of_a_cpu_wake_no_thread() -> None:
    host = targets.get("x86-64-v3")
    assert program_cost(parse(counting_loop(100, 8)), host).seconds < 10e-6
    large = program_cost(parse(counting_loop(1, 1 << 24)), host)
    assert {s.cost.opcode: s.estimate.launch >= 1e-6 for s in large.steps} == {
        "compare": False, "add": False, "tanh": True,
    }  # fmt: skip


def test_a_cpu_sorts_and_updates_one_element_after_the_other() -> None:
    """Its peak rate, which is that of vectors, says nothing about them."""
    machine = targets.get("cpu")
    step = last("s = f32[4096]{0} sort(x), dimensions={0}, to_apply=less", "f32[4096]{0} x")
    cost = kernel_cost(step)
    lanes = machine.vector_bits / 32
    assert lanes > 1
    assert estimate(cost, machine).compute == lanes * cost.flops / machine.flops_of("f32")


def test_a_transform_has_work_for_every_level() -> None:
    lines = "c64[4,1024]{1,0} x"
    whole = flops(last("f = c64[4,1024]{1,0} fft(x), fft_type=FFT, fft_length={1024}", lines))
    assert whole == 4 * 1024 * 5 * 10


def test_routines_of_lapack_are_called() -> None:
    call = 'f = (f32[4,4]{1,0}, s32[4]{0}, s32[]) custom-call(x), custom_call_target="lapack_sgetrf_ffi"'
    module = parse(f"HloModule m\n\nENTRY e {{\n  x = f32[4,4]{{1,0}} parameter(0)\n  ROOT {call}\n}}\n")
    (step,) = program_cost(module, targets.get("cpu")).steps
    assert step.estimate.launch < 1e-7


def test_a_window_of_no_dimensions_takes_one_element() -> None:
    text = """HloModule m
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY main {
  x = f32[] parameter(0)
  ROOT r = f32[] reduce-window(x, x), to_apply=sum
}"""
    assert flops(parse(text).entry.root) == 1


SHARES = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  p = f32[64,128]{1,0} parameter(0)
  zero = f32[] constant(0)
  e = f32[64,128]{1,0} exponential(p)
  s = f32[64]{0} reduce(e, zero), dimensions={1}, to_apply=sum
  b = f32[64,128]{1,0} broadcast(s), dimensions={0}
  ROOT r = f32[64,128]{1,0} divide(e, b)
}

ENTRY e {
  x = f32[64,128]{1,0} parameter(0)
  ROOT f = f32[64,128]{1,0} fusion(x), kind=kLoop, calls=body
}
"""


def test_a_row_that_is_kept_is_read_and_computed_once() -> None:
    row = parse(SHARES).entry.root
    for keeps, times in ((True, 1), (False, 2)):
        cost = kernel_cost(row, keeps)
        assert (cost.transcendentals, cost.reads[0].total) == (times * 64 * 128, times * 32768)


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
def test_kernels_that_differ_in_names_cost_the_same(target: str) -> None:
    """A trace's costs take a kernel's from one that lowering has found to be alike."""
    module = parse(program("gpt2_12l_train_step").read_text())
    compilation = Compilation(module, targets.get(target), Options(), Trace())
    _ = compilation.lowered
    assert len(set(compilation.alike.values())) < len(compilation.alike)
    scheduled, machine = compilation.scheduled, compilation.target
    assert program_cost(scheduled, machine, compilation.alike) == program_cost(scheduled, machine)


def test_a_cost_that_is_kept_follows_names_and_bodies() -> None:
    text = """
    HloModule kept

    body {
      p = f32[64] parameter(0)
      q = f32[64] parameter(1)
      ROOT r = f32[64] add(p, q)
    }

    ENTRY e {
      x = f32[64] parameter(0)
      y = f32[64] parameter(1)
      ROOT f = f32[64] fusion(x, y), kind=kLoop, calls=body
    }
    """
    fusion = parse(text).entry.root
    before = kernel_cost(fusion)
    x, y = fusion.operands
    fusion.set_operands((y, x))
    assert [r.operand for r in before.reads] == ["x", "y"]
    assert [r.operand for r in kernel_cost(fusion).reads] == ["y", "x"]
    body = fusion.calls
    body.replace(body.root, body.add("power", body.parameters))
    assert kernel_cost(fusion).flops > 4 * before.flops
