"""The quick way into CPU programs: what it takes, what it leaves to the long way, and that nothing leaks or is shared."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import heron
from heron import HeronError
from heron.compiling import compile
from heron.runtime import numpy_api
from heron.runtime.cpu import call
from heron.runtime.cpu.executable import CpuExecutable

pytestmark = pytest.mark.skipif(not numpy_api.known_layout(), reason="a build of Python the quick way does not know")

ADD = "HloModule m\n\nENTRY e {\n  x = f32[3,5] parameter(0)\n  y = f32[3,5] parameter(1)\n  ROOT z = f32[3,5] add(x, y)\n}\n"
#: scratch, several outputs of which two are one array, a scalar, a constant
PARTS = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY e {
  x = f32[64,64] parameter(0)
  k = s32[] parameter(1)
  zero = f32[] constant(0)
  p = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  q = f32[64,64] dot(p, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[] reduce(q, zero), dimensions={0,1}, to_apply=sum
  one = s32[] constant(1)
  n = s32[] add(k, one)
  c = bf16[2] constant({1.5, 2})
  ROOT t = (f32[], s32[], bf16[2], f32[]) tuple(s, n, c, s)
}
"""
#: parameter 0 becomes output 0
STEP = """HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY e {
  w = f32[1000] parameter(0)
  g = f32[1000] parameter(1)
  v = f32[1000] add(w, g)
  n = f32[1000] negate(w)
  ROOT t = (f32[1000], f32[1000]) tuple(v, n)
}
"""


def build(text: str) -> CpuExecutable:
    """Compiled, and called so often that the quick way is there."""
    made = compile(heron.parse(text), "cpu")
    assert isinstance(made, CpuExecutable)
    arguments = [np.zeros(s.dims, s.element_type.dtype) for s in made.signature.parameters]
    for _ in range(3):
        made(*arguments)
    assert made._quick(*arguments) is not NotImplemented
    return made


def noise(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


def test_it_gives_what_the_long_way_gives() -> None:
    for text, arguments in (
        (ADD, (noise(3, 5), noise(3, 5))),
        (PARTS, (noise(64, 64), np.array(41, np.int32))),
        (STEP, (noise(1000), noise(1000))),
    ):
        made = build(text)
        quick, long = made.run(arguments), made._bound(list(arguments), False)
        assert [a.tobytes() for a in quick] == [a.tobytes() for a in long]
        assert [(a.dtype, a.shape) for a in quick] == [(a.dtype, a.shape) for a in long]
        assert all(a.flags.owndata and a.flags.writeable for a in quick)


def test_the_result_is_packed_as_the_program_says() -> None:
    assert isinstance(build(ADD)(noise(3, 5), noise(3, 5)), np.ndarray)
    found = build(PARTS)(noise(64, 64), np.array(41, np.int32))
    assert isinstance(found, tuple) and len(found) == 4
    assert found[1] == 42 and found[2].dtype == ml_dtypes.bfloat16
    nested = build(
        ADD.replace("ROOT z", "z").replace(
            "}\n", "  i = (f32[3,5]) tuple(z)\n  ROOT r = ((f32[3,5]), f32[3,5]) tuple(i, x)\n}\n"
        )
    )
    (z,), x = nested(noise(3, 5), noise(3, 5))
    assert np.array_equal(z, x + x)


def test_every_call_has_outputs_of_its_own() -> None:
    made, x = build(ADD), noise(3, 5)
    first, second = made(x, x), made(x, x)
    first[:] = 7
    assert np.array_equal(second, x + x)


@pytest.mark.parametrize(
    "x",
    [
        noise(6, 5)[::2],
        noise(5, 3).T,
        np.asfortranarray(noise(3, 5)),
        np.frombuffer(b"\0" + noise(3, 5).tobytes(), np.float32, 15, 1).reshape(3, 5),
        noise(3, 5).view(np.matrix),
    ],
    ids=["gaps", "transposed", "fortran", "misaligned", "subclass"],
)
def test_what_it_refuses_goes_the_long_way(x: np.ndarray) -> None:
    made, y = build(ADD), noise(3, 5)
    assert made._quick(x, y) is NotImplemented
    assert np.array_equal(made(x, y), np.asarray(x) + y)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((noise(3, 5),), "RUN001"),
        ((noise(3, 5),) * 3, "RUN001"),
        ((noise(3, 5), noise(3, 5).astype(np.float64)), "RUN002"),
        ((noise(3, 5), noise(3, 5).astype(">f4")), "RUN002"),
        ((noise(3, 5), noise(5, 3)), "RUN003"),
        ((noise(3, 5), noise(15)), "RUN003"),
        ((noise(3, 5), None), "RUN002"),
        ((noise(3, 5), "text"), "RUN002"),
    ],
    ids=["few", "many", "dtype", "byte order", "shape", "rank", "none", "text"],
)
def test_bad_arguments_are_named(arguments: tuple[Any, ...], code: str) -> None:
    made = build(ADD)
    with pytest.raises(HeronError) as caught:
        made(*arguments)
    assert caught.value.code == code


def test_nothing_leaks() -> None:
    made, x, k = build(PARTS), noise(64, 64), np.array(1, np.int32)
    bad = noise(2)
    bf16 = np.dtype(ml_dtypes.bfloat16)

    def counts() -> list[int]:
        gc.collect()
        return [sys.getrefcount(o) for o in (x, k, bad, bf16, x.dtype, NotImplemented)]

    def calls() -> None:
        for _ in range(200):
            made(x, k)
            assert made._quick(bad, k) is NotImplemented

    calls()
    before = counts()
    calls()
    assert all(abs(a - b) < 20 for a, b in zip(before, counts(), strict=True))


def test_scratch_belongs_to_one_call_at_a_time() -> None:
    made, k = build(PARTS), np.array(1, np.int32)
    inputs = [noise(64, 64) * n for n in range(1, 5)]
    expected = [made(x, k)[0].tobytes() for x in inputs]
    wrong: list[int] = []

    def work(n: int) -> None:
        for _ in range(200):
            if made(inputs[n], k)[0].tobytes() != expected[n]:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_without_the_quick_way_all_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "load", lambda: None)
    made = compile(heron.parse(ADD), "cpu")
    x = noise(3, 5)
    for _ in range(3):
        assert np.array_equal(made(x, x), x + x)


# -- donated arguments -------------------------------------------------------------------------------------------------


def test_aliased_arguments_are_copied_unless_they_are_donated() -> None:
    made, w, g = build(STEP), noise(1000), noise(1000) + 1
    before = w.copy()
    made(w, g)
    assert np.array_equal(w, before)
    for _ in range(3):
        expected = made.run((w, g))
        v, n = made.run((w, g), donate=True)
        assert v is w and np.array_equal(v, expected[0]) and np.array_equal(n, expected[1])


def test_a_donated_array_one_may_not_write_to_is_copied() -> None:
    made, w, g = build(STEP), noise(1000), noise(1000)
    w.flags.writeable = False
    before = w.copy()
    v, _ = made.run((w, g), donate=True)
    assert v is not w and np.array_equal(w, before) and np.array_equal(v, w + g)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_donated_arrays_may_not_share_memory(target: str) -> None:
    made = compile(heron.parse(STEP), target)
    whole = noise(1500)
    for w, g in ((whole[:1000], whole[:1000]), (whole[:1000], whole[500:])):
        with pytest.raises(HeronError, match="arguments 0 and 1 share memory") as caught:
            made.run((w, g), donate=True)
        assert caught.value.code == "RUN005"
    v, _ = made.run((whole[:1000], noise(1000)), donate=True)
    assert v.base is whole or v.base is None
