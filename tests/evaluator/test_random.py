"""Random numbers: generators bit for bit as XLA:CPU's, distributions by their ranges."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import Evaluator, evaluate, flatten
from heron.hlo.meaning.draws import FIRST_STATE
from heron.hlo.text import parse
from tests import xla_cpu

TYPES = "u4 u8 s8 u16 f16 bf16 s32 f32 u64 f64".split()
DIMS = ("5", "2,3", "", "3,1,5")
#: the counter runs over its lower word
STATE = np.array([0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFE, 0xFEDCBA9876543210], np.uint64)


def _drawing(algorithm: str, words: int) -> str:
    """A module that draws each type in each shape, every draw from the same state."""
    lines, names, shapes = [], [], []
    for n, (t, dims) in enumerate((t, dims) for t in TYPES for dims in DIMS):
        shape = f"{t}[{dims}]"
        lines.append(f"  r{n} = (u64[{words}], {shape}) rng-bit-generator(s), algorithm={algorithm}")
        lines.append(f"  a{n} = u64[{words}] get-tuple-element(r{n}), index=0")
        lines.append(f"  b{n} = {shape} get-tuple-element(r{n}), index=1")
        names += [f"a{n}", f"b{n}"]
        shapes += [f"u64[{words}]", shape]
    root = f"  ROOT r = ({', '.join(shapes)}) tuple({', '.join(names)})"
    return "\n".join(["HloModule m", "ENTRY e {", f"  s = u64[{words}] parameter(0)", *lines, root, "}\n"])


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [("rng_three_fry", 2), ("rng_philox", 2), ("rng_default", 3)],
)
def test_bits_are_those_of_xla(algorithm: str, words: int) -> None:
    text = _drawing(algorithm, words)
    for got, wanted in zip(evaluate(parse(text), STATE[:words]), xla_cpu.run(text, STATE[:words]), strict=True):
        # XLA:CPU hands signed integers out as unsigned ones
        assert got.shape == wanted.shape and got.tobytes() == wanted.tobytes(), (got.dtype, got.shape)


def test_the_default_state_may_be_given_in_32_bit_words() -> None:
    text = """HloModule m
ENTRY e {
  s = u32[4] parameter(0)
  ROOT r = (u32[4], f32[3]) rng-bit-generator(s), algorithm=rng_default
}
"""
    narrow = evaluate(parse(text), STATE[:2].view(np.uint32))
    wide = evaluate(parse(text.replace("u32[4]", "u64[2]")), STATE[:2])
    assert [a.tobytes() for a in narrow] == [a.tobytes() for a in wide]


def _draw(t: str, a: str, b: str, distribution: str = "rng_uniform", count: int = 2000) -> np.ndarray:
    text = f"""HloModule m
ENTRY e {{
  a = {t}[] constant({a})
  b = {t}[] constant({b})
  ROOT r = {t}[{count}] rng(a, b), distribution={distribution}
}}
"""
    return flatten(Evaluator(parse(text), seed=3).run())[0]


@pytest.mark.parametrize(
    ("t", "a", "b"),
    [("s32", "-3", "4"), ("u8", "250", "255"), ("s8", "-128", "127"), ("s64", "-9223372036854775808", "9223372036854775807"),
     ("u64", "0", "18446744073709551615"), ("s4", "-8", "7"), ("f32", "-1", "2"), ("f16", "0.5", "1"), ("bf16", "0", "1"), ("f64", "3", "4")],
)  # fmt: skip
def test_uniform_numbers_fill_the_half_open_range(t: str, a: str, b: str) -> None:
    drawn = _draw(t, a, b)
    wide = drawn.astype(np.float64) if t[0] in "fb" or t == "s4" else drawn.astype(object)
    low, high = (float if t[0] in "fb" else int)(a), (float if t[0] in "fb" else int)(b)
    assert (wide >= low).all() and (wide < high).all()
    assert wide.min() < low + (high - low) / 4 and wide.max() >= low + (high - low) / 2


def test_normal_numbers_have_mean_and_deviation() -> None:
    drawn = _draw("f32", "5", "2", "rng_normal")
    assert abs(drawn.mean() - 5) < 0.2 and abs(drawn.std() - 2) < 0.2


@pytest.mark.parametrize(
    ("t", "a", "b", "distribution"),
    [("s32", "4", "4", "rng_uniform"), ("s32", "4", "-4", "rng_uniform"), ("f32", "0", "inf", "rng_uniform"),
     ("f32", "nan", "1", "rng_normal"), ("f32", "0", "-1", "rng_normal")],
)  # fmt: skip
def test_distributions_that_make_no_sense_give_something(t: str, a: str, b: str, distribution: str) -> None:
    assert _draw(t, a, b, distribution, 7).shape == (7,)


def test_the_state_of_the_module_advances() -> None:
    text = """HloModule m
ENTRY e {
  a = u64[2] rng-get-and-update-state(), delta=3
  b = u64[2] rng-get-and-update-state(), delta=1
  ROOT r = (u64[2], u64[2]) tuple(a, b)
}
"""
    a, b = flatten(Evaluator(parse(text), seed=(1 << 64) - 1 - FIRST_STATE).run())
    assert a.tolist() == [(1 << 64) - 1, 0] and b.tolist() == [2, 1]  # low word first
