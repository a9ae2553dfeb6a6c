"""Fourier transforms by code of our own against the evaluator: every factor, every kind, any number of dimensions."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron import targets
from heron.backends.compiler import Compilation
from heron.cli import values
from heron.codegen.native import fft, fft_chirp, fft_passes, fft_prime, fft_tables
from heron.codegen.native.fft_passes import LineVector, factors
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import F64
from heron.options import Options
from heron.trace import Trace
from tests.backends.agree import assert_agrees, program

KINDS = ("FFT", "IFFT", "RFFT", "IRFFT")
#: tolerance over the largest magnitude
CLOSE = {"f32": 1e-6, "f64": 2e-15}


def transform(kind: str, dims: tuple[int, ...], rank: int, t: str) -> Module:
    """A transform of the last `rank` of `dims`, the real side's where one is."""
    lengths = dims[len(dims) - rank :]
    half = (*dims[:-1], dims[-1] // 2 + 1)
    complex_ = {"f32": "c64", "f64": "c128"}[t]
    shapes = {
        "FFT": ((complex_, dims), (complex_, dims)),
        "IFFT": ((complex_, dims), (complex_, dims)),
        "RFFT": ((t, dims), (complex_, half)),
        "IRFFT": ((complex_, half), (t, dims)),
    }[kind]
    texts = [f"{element}[{','.join(map(str, sizes))}]" for element, sizes in shapes]
    return program([texts[0]], texts[1], f"fft(p0), fft_type={kind}, fft_length={{{','.join(map(str, lengths))}}}")


def assert_close(kind: str, dims: tuple[int, ...], rank: int, t: str) -> None:
    module = transform(kind, dims, rank, t)
    exe = assert_agrees(module, "cpu")
    assert "scipy" not in exe.stage("thunks")
    (parameter,) = module.entry.parameters
    rng = np.random.default_rng(3)
    x = rng.standard_normal(parameter.shape.dims).astype(parameter.shape.element_type.dtype)
    if np.iscomplexobj(x):
        x = x + (1j * rng.standard_normal(x.shape)).astype(x.dtype)
    (found,), (wanted,) = exe.run([x]), heron.evaluate(module, x)
    assert np.abs(found - wanted).max() <= CLOSE[t] * max(np.abs(wanted).max(), 1e-30)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("radix", fft_passes.RADICES)
def test_factors(radix: int, t: str) -> None:
    assert_close("FFT", (17, 2 * radix * radix), 1, t)
    assert_close("IRFFT", (16, 6 * radix), 1, t)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dims", "rank"),
    [
        ((33, 30), 1),
        ((19, 26, 40), 2),
        ((9, 10, 12, 22), 3),
        ((3, 8, 2), 1),
        ((20, 1), 1),
        ((17, 15), 1),
        ((9, 8, 21), 2),
    ],
)
def test_kinds(kind: str, dims: tuple[int, ...], rank: int, t: str) -> None:
    assert_close(kind, dims, rank, t)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dims", "rank"),
    [
        ((20, 37), 1),
        ((16, 82), 1),
        ((9, 41, 43), 2),
        ((16, 1009), 1),
        ((17, 407), 1),
        ((2, 61), 1),
        ((8, 127, 3), 2),
        ((16, 1369), 1),
        ((3, 183), 1),
    ],
)
def test_large_prime_factors(kind: str, dims: tuple[int, ...], rank: int, t: str) -> None:
    assert_close(kind, dims, rank, t)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dims", "rank"),
    [((1,), 1), ((6,), 1), ((4, 6), 1), ((1, 97), 1), ((2, 45), 1), ((3, 5, 7), 2), ((2, 3, 4), 3), ((1000, 1, 1), 2)],
)
def test_few_lines(kind: str, dims: tuple[int, ...], rank: int, t: str) -> None:
    assert_close(kind, dims, rank, t)


#: with as many lanes as any machine has, with fewer, of a number of elements that blocks do not divide, and primes
ALONE = (16, 32, 256, 1024, 8, 24, 40, 1000, 8232, 12000, 4, 12, 100, 2, 6, 37, 331)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", ALONE)
def test_a_line_by_itself(kind: str, length: int, t: str) -> None:
    """Neighbouring elements share a vector, unless the length is odd."""
    for lines in (1, 3):
        assert_close(kind, (lines, length), 1, t)
        assert_close(kind, (lines, 2 * length), 1, t)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT"])
def test_a_long_line_of_prime_length(kind: str) -> None:
    assert_close(kind, (4099,), 1, "f32")


def test_the_form_of_lines() -> None:
    def form(lines: int, length: int) -> fft.Form:
        (stage,) = fft.stages("FFT", (length,), (lines, length))
        return fft.form_of(stage, F64)

    widest = fft_passes.vectors_for(F64, 1 << 20)[0]
    assert form(1, 1024) == fft.Form(widest, 1024, is_alone=True)
    assert form(64, 1024) == fft.Form(widest, 1024)
    # together they would not stay in a cache, unless two of them, half of a vector of 256 bits, do
    assert form(64, 32768).is_alone == (widest.lanes == 8)
    assert not form(1, 81).is_alone
    assert form(1, 331).is_alone and form(1, 331).length % widest.lanes == 0


def test_primes_of_a_hundred_have_passes() -> None:
    """A chirp is for larger ones, for several, and for small lines of which it takes less time."""
    wide, narrow = LineVector(F64, 8), LineVector(F64, 2)
    assert fft_prime.passes(5 * 17 * 47, wide) == [5, 17, 47] == fft_prime.passes(5 * 17 * 47, narrow)
    assert fft_prime.passes(2 * 37 * 37, wide) == [2, 37, 37]
    assert fft_prime.passes(83 * 97, wide) == [83, 97] and fft_prime.passes(83 * 97, narrow) is None
    assert fft_prime.passes(4 * 131, wide) is fft_prime.passes(61 * 89 * 113, wide) is None
    (stage,) = fft.stages("FFT", (3995,), (64, 3995))
    assert fft.form_of(stage, F64).length == 3995


@settings(max_examples=30)
@given(
    st.sampled_from(KINDS),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.integers(1, 3),
    st.sampled_from(["f32", "f64"]),
)
def test_any_size(kind: str, dims: list[int], rank: int, t: str) -> None:
    assert_close(kind, tuple(dims), min(rank, len(dims)), t)


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize(("kind", "dims"), [("FFT", (17, 16384)), ("RFFT", (16, 32768)), ("IFFT", (3, 10007))])
def test_long_lines(kind: str, dims: tuple[int, ...], t: str) -> None:
    """They take narrower vectors, so that they stay in a cache."""
    assert_close(kind, dims, 1, t)


INSIDE = """HloModule inside

one {
  a = c64[4,6] parameter(0)
  ROOT r = c64[4,6] fft(a), fft_type=FFT, fft_length={6}
}

two {
  b = c64[4,6] parameter(0)
  ROOT r = c64[4,6] fft(b), fft_type=IFFT, fft_length={4,6}
}

body {
  s = (s32[], c64[4,6]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  z = c64[4,6] get-tuple-element(s), index=1
  t = s32[] constant(2)
  m = s32[] remainder(n, t)
  w = c64[4,6] conditional(m, z, z), branch_computations={one, two}
  i = s32[] constant(1)
  k = s32[] add(n, i)
  ROOT r = (s32[], c64[4,6]) tuple(k, w)
}

more {
  s = (s32[], c64[4,6]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  l = s32[] constant(5)
  ROOT r = pred[] compare(n, l), direction=LT
}

ENTRY e {
  x = c64[4,6] parameter(0)
  o = s32[] constant(0)
  s = (s32[], c64[4,6]) tuple(o, x)
  v = (s32[], c64[4,6]) while(s), condition=more, body=body
  ROOT r = c64[4,6] get-tuple-element(v), index=1
}
"""


def test_in_branches_of_loops() -> None:
    exe = assert_agrees(heron.parse(INSIDE), "cpu")
    decisions = [d for d in exe.trace.decisions if d.rule == "fft"]
    assert "scipy" not in exe.stage("thunks") and len(decisions) == 2 and all(d.ok for d in decisions)


@pytest.mark.parametrize("width", [128, 256])
@pytest.mark.parametrize("kind", KINDS)
def test_narrower_vectors(kind: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fft, "vectors_for", lambda element, _: [fft_passes.LineVector(element, width // element.bits)])
    assert_close(kind, (3, 10, 24), 2, "f32")
    assert_close(kind, (5, 12), 1, "f64")


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_nothing_and_lines_stay_apart(kind: str) -> None:
    module = transform(kind, (70, 96), 1, "f32")
    (parameter,) = module.entry.parameters
    size = prod(parameter.shape.dims)
    x = np.random.default_rng(0).standard_normal(size).reshape(parameter.shape.dims)
    x = x.astype(parameter.shape.element_type.dtype)
    alone, shared = (compile(module, "cpu", Options(threads=n)).run([x])[0] for n in (1, 3))
    np.testing.assert_array_equal(alone, shared)
    x[7] = np.nan
    x[20] = np.inf
    spoiled = compile(module, "cpu").run([x])[0]
    others = [n for n in range(70) if n not in (7, 20)]
    np.testing.assert_array_equal(spoiled[others], alone[others])
    assert np.isnan(spoiled[7]).any()


def test_ends_of_a_real_line_are_real() -> None:
    """What the imaginary parts of the first and last element are does not matter."""
    module = transform("IRFFT", (16, 12), 1, "f32")
    x = np.random.default_rng(0).standard_normal((16, 7)).astype(np.complex64)
    (wanted,) = compile(module, "cpu").run([x])
    x[:, [0, -1]] += 5j
    np.testing.assert_array_equal(compile(module, "cpu").run([x])[0], wanted)


PLANES = """HloModule planes

ENTRY e {
  x = c64[32,32,17] parameter(0)
  n = c64[32,32,17] negate(x)
  p = f32[32,32,32] fft(n), fft_type=IRFFT, fft_length={32,32}
  t = f32[32,32,32] tanh(p)
  b = c64[32,32,17] fft(t), fft_type=RFFT, fft_length={32,32}
  s = c64[32,32,17] add(b, n)
  q = f32[32,32,32] fft(s), fft_type=IRFFT, fft_length={32,32}
  ROOT r = (f32[32,32,32], f32[32,32,32]) tuple(q, p)
}
"""


def test_scratch_is_planned_with_all_other_memory() -> None:
    """Planes back to real numbers have lines between their two stages, which live as long as the transform runs."""
    module = heron.parse(PLANES)
    done = Compilation(module, targets.get("cpu"), Options(), Trace())
    buffers, timeline = done.buffers, done.buffers.sets.liveness.timeline
    assert [(i.opcode, s.size) for i, s in buffers.scratch.items()] == [("fft", 8 * 32 * 32 * 17)] * 2
    for i, scratch in buffers.scratch.items():
        now = timeline.start[i]
        for value, place in buffers.slices.items():
            if value.instruction is i.operands[0]:  # each line of it is read before it is written
                continue
            held = any(first <= now <= last for first, last in buffers.sets.liveness.intervals[value])
            assert not (held and place.overlaps(scratch)), value.name
    made = compile(module, "cpu")
    assert made.stage("thunks").count("scratch #") == 2 and made.memory["temp"] == buffers.temp_bytes
    inputs = values.random(module, 0)
    for got, wanted in zip(made.run(inputs), evaluate(module, *inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "dims", "rank", "why"),
    [
        ("FFT", (64, 100003), 1, "lines of 100003 elements do not stay in a cache"),
        ("FFT", (64, 262144), 1, "lines of 262144 elements do not stay in a cache"),
        ("FFT", (19683,), 1, "a vector with one line of 19683 elements is slower"),
        ("IRFFT", (39366,), 1, "a vector with one line of 19683 elements is slower"),
    ],
)
def test_what_the_library_does(kind: str, dims: tuple[int, ...], rank: int, why: str) -> None:
    exe = compile(transform(kind, dims, rank, "f32"), "cpu")
    assert "scipy.fft" in exe.stage("thunks")
    (decision,) = [d for d in exe.trace.decisions if d.rule == "fft"]
    assert not decision.ok and why in decision.reason


def test_roots_are_rounded_once() -> None:
    found = fft_tables.roots(12, 12, F64)
    np.testing.assert_allclose(found[3], [0, -1], rtol=0, atol=1e-18)
    np.testing.assert_array_equal(found[1], [np.sqrt(0.75), -0.5])


@pytest.mark.parametrize("multiple", [1, 16])
def test_a_chirp_has_the_transforms_of_least_work(multiple: int) -> None:
    """The lengths to choose from are made of their factors: to try all takes seconds for a line of a million."""
    for n in (1, 2, 37, 331, 2081, 5003):
        lengths = (x for x in range(multiple, 4 * n + multiple, multiple) if x >= 2 * n - 1 and factors(x) is not None)
        assert fft_chirp.work_at(fft_chirp.room(n, multiple)) == min(map(fft_chirp.work_at, lengths))
    assert fft_chirp.room(100_000_007, multiple) % multiple == 0
