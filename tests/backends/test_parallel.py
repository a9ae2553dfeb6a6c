"""Which kernels threads share, and that values do not depend on how many threads there are."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron import HeronError, Options
from heron.backends.cpu import machine, parallel
from heron.cli import values
from heron.codegen.native import copies
from heron.compiling import compile
from heron.runtime.cpu import pool
from heron.runtime.cpu.executable import CpuExecutable
from heron.runtime.host.fft import Transform
from tests.support import golden_values, program

pytestmark = pytest.mark.skipif(not pool.supported(), reason="the pool needs Linux on x86-64 or AArch64")


def _tanh(rows: int, columns: int, threads: int = 2) -> CpuExecutable:
    shape = f"f32[{rows},{columns}]{{1,0}}"
    text = f"HloModule m\n\nENTRY e {{\n  x = {shape} parameter(0)\n  ROOT y = {shape} tanh(x)\n}}\n"
    made = compile(heron.parse(text), "cpu", Options(threads=threads))
    assert isinstance(made, CpuExecutable)
    return made


def test_large_kernels_are_shared_and_the_trace_says_why() -> None:
    made = _tanh(1000, 1000)
    (decision,) = [d for d in made.trace.decisions if d.rule == "parallel-task-assigner"]
    assert decision and "portions" in decision.reason and decision.cost_before
    assert "portions" in made.kernels[0].notes["threads"]
    assert "heron_parallel_for" in made.stage("llvm")


@pytest.mark.parametrize(("elements", "step"), [(1 << 20, 64), (100_000, 32), (100_016, 16), (100_001, 1)])
def test_the_ends_of_shares_are_multiples(elements: int, step: int) -> None:
    """LLVM is told, and leaves out what would compute steps that fill no vector; values are the same."""
    made = _tanh(1, elements)
    (kernel,) = made.stages.compilation.lowered.kernels.values()  # type: ignore[union-attr]
    assert parallel.step(kernel.kernel) == step
    assert (f"and i64 %v3, -{step}" in made.stage("llvm")) == (step > 1)
    x = np.linspace(-3, 3, elements, dtype=np.float32).reshape(1, elements)
    assert np.array_equal(made(x), _tanh(1, elements, threads=1)(x))


def test_small_kernels_are_not() -> None:
    made = _tanh(10, 10)
    (decision,) = [d for d in made.trace.decisions if d.rule == "parallel-task-assigner"]
    assert not decision and "µs of work" in decision.reason
    assert made.kernels[0].notes["threads"].startswith("one: ")
    assert "heron_parallel_for" not in made.stage("llvm")


def _is_shared(text: str) -> bool:
    made = compile(heron.parse(text), "cpu", Options(threads=2))
    (found,) = [d for d in made.trace.decisions if d.rule == "parallel-task-assigner"]
    return bool(found)


STEP = """HloModule m
ENTRY e {{
  x = f32[{n}] parameter(0)
  y = f32[{n}] parameter(1)
  a = f32[{n}] add(x, y)
  b = f32[{n}] multiply(a, y)
  ROOT c = f32[{n}] {last}
}}"""
SORT = "HloModule m\nless {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }}\n"
SORT += "ENTRY e {{ x = f32[4,{n}] parameter(0) ROOT c = f32[4,{n}] sort(x), dimensions={{1}}, to_apply=less }}"


@pytest.mark.parametrize(("last", "one", "two"), [("tanh(b)", 9_000, 40_000), ("negate(b)", 20_000, 200_000)])
def test_what_vectors_do_in_microseconds_is_not_shared(last: str, one: int, two: int) -> None:
    """To wake a thread at every step of a recurrent cell takes twice as long as its work."""
    assert not _is_shared(STEP.format(n=one, last=last))
    assert _is_shared(STEP.format(n=two, last=last))


LOOK_UP = """HloModule m
ENTRY e {{
  x = f32[1000] parameter(0)
  i = s32[{n},1] parameter(1)
  g = f32[{n}] gather(x, i), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1,
    slice_sizes={{1}}
  ROOT r = f32[{n}] tanh(g)
}}"""


@pytest.mark.parametrize(("text", "n"), [(SORT, 2000), (LOOK_UP, 12_000)])
def test_what_goes_one_by_one_takes_longer(text: str, n: int) -> None:
    assert _is_shared(text.format(n=n))


def test_a_row_of_a_large_array_is_updated_by_one_thread() -> None:
    text = """HloModule m
    ENTRY e {
      x = f32[2000,500] parameter(0)
      u = f32[1,500] parameter(1)
      i = s32[] parameter(2)
      zero = s32[] constant(0)
      v = f32[1,500] negate(u)
      ROOT y = f32[2000,500] dynamic-update-slice(x, v, i, zero)
    }"""
    made = compile(heron.parse(text), "cpu", Options(threads=2))
    found = [d for d in made.trace.decisions if d.rule == "parallel-task-assigner"]
    assert found and not any(found)


def test_one_thread_computes_a_row_of_what_is_large() -> None:
    text = """HloModule m
    body {
      x = f32[2000,500] parameter(0)
      i = s32[] parameter(1)
      zero = s32[] constant(0)
      y = f32[2000,500] tanh(x)
      ROOT r = f32[1,500] dynamic-slice(y, i, zero), dynamic_slice_sizes={1,500}
    }
    ENTRY e {
      x = f32[2000,500] parameter(0)
      i = s32[] parameter(1)
      ROOT f = f32[1,500] fusion(x, i), kind=kLoop, calls=body
    }"""
    assert parallel.seconds(heron.parse(text).entry.root) < parallel.WORTH


def test_one_thread_needs_no_pool() -> None:
    made = _tanh(1000, 1000, threads=1)
    assert "heron_parallel_for" not in made.stage("llvm")
    assert "threads" not in made.kernels[0].notes


def test_a_machine_without_a_pool_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pool, machine):
        monkeypatch.setattr(module, "supported", lambda: False)
    made = _tanh(1000, 1000)
    assert any("one thread" in note for note in made.trace.notes)
    assert "heron_parallel_for" not in made.stage("llvm")


def test_more_threads_than_cpus() -> None:
    x = np.linspace(-2, 2, 10**6, dtype=np.float32).reshape(1000, 1000)
    assert _tanh(1000, 1000, threads=64)(x).tobytes() == _tanh(1000, 1000, threads=1)(x).tobytes()


@pytest.mark.parametrize(
    ("items", "cost", "expected"),
    [(100, 1.0, 1), (100, 40e-6, 10), (10**6, 1.0, 256), (10**6, 1e-3, 4096), (5000, 1.0, 256), (4, 40e-6, 1)],
)
def test_portions(items: int, cost: float, expected: int) -> None:
    assert parallel.grain(items, cost) == expected


def test_bad_counts() -> None:
    for bad in (-1, True, "2", 1.5):
        with pytest.raises(HeronError):
            Options(threads=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    ["softmax", "layernorm", "gather_scatter", "sort_topk", "heat_while", "dtype_zoo", "cumsum", "concat_pad_slice"],
)
def test_same_bits_whatever_the_number_of_threads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH", 0.0)
    monkeypatch.setattr(parallel, "PORTION", 0.0)
    module = heron.parse(program(name).read_text())
    inputs = values.read(str(golden_values(name))).inputs
    alone = [a.tobytes() for a in compile(module, "cpu", Options(threads=1)).run(inputs)]
    shared = 0
    for threads in (2, 3, 8):
        made = compile(module, "cpu", Options(threads=threads))
        shared += sum(bool(d) for d in made.trace.decisions if d.rule == "parallel-task-assigner")
        for _ in range(3):
            assert [a.tobytes() for a in made.run(inputs)] == alone, threads
    assert shared


def test_large_copies_are_shared() -> None:
    elements = copies.SHARED // 4 + 1001
    shape = f"f32[{elements}]{{0}}"
    text = f"HloModule m\n\nENTRY e {{\n  x = {shape} parameter(0)\n  ROOT y = {shape} copy(x)\n}}\n"
    made = compile(heron.parse(text), "cpu", Options(threads=3))
    assert "heron_copy" in made.stage("llvm")
    x = np.arange(elements, dtype=np.float32)
    for _ in range(5):
        assert made(x).tobytes() == x.tobytes()


def test_a_failing_library_call_leaves_the_pool_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """HloModule m

ENTRY e {
  x = f32[2,500000]{1,0} parameter(0)
  y = f32[2,500000]{1,0} tanh(x)
  c = c64[2,250001]{1,0} fft(y), fft_type=RFFT, fft_length={500000}
  r = f32[2,250001]{1,0} real(c)
  ROOT z = f32[2,250001]{1,0} tanh(r)
}
"""
    made = compile(heron.parse(text), "cpu", Options(threads=2))
    x = np.ones((2, 500000), np.float32)
    expected = made(x)
    usual = Transform.__call__

    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Transform, "__call__", fails)
    with pytest.raises(ZeroDivisionError):
        made(x)
    monkeypatch.setattr(Transform, "__call__", usual)
    assert made(x).tobytes() == expected.tobytes()
