"""integer-narrowing: sums of bytes and truth values in the narrowest type that all numbers fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.hlo.text.printer import print_module
from tests.buffers.compiled import run_passes

DTYPES = {"pred": np.bool_, "s8": np.int8, "u8": np.uint8, "s16": np.int16, "u16": np.uint16}


def narrowed(text: str) -> str:
    module = parse(text)
    run_passes(module, ("integer-narrowing", "dce"))
    return print_module(module)


def program(leaves: list[str], wide: str, lines: list[str], end: str) -> str:
    """Conversions w0, w1 … of arguments to the wide type, and what is computed of them."""
    given = [f"p{n} = {t}[64] parameter({n})\n w{n} = {wide}[64] convert(p{n})" for n, t in enumerate(leaves)]
    return "\n ".join(["HloModule m\nENTRY e {", *given, *lines, end]) + "\n}"


def compared(x: str, wide: str, number: int) -> str:
    return (
        f"k = {wide}[] constant({number})\n kb = {wide}[64] broadcast(k), dimensions={{}}\n"
        f" ROOT r = pred[64] compare({x}, kb), direction=LT"
    )


@pytest.mark.parametrize(
    ("leaf", "count", "wide", "found"),
    [
        ("pred", 3, "s32", "s8"), ("pred", 127, "s32", "s8"), ("pred", 128, "s32", "u8"), ("pred", 256, "u64", "s16"),
        ("u8", 2, "s32", "s16"), ("s8", 2, "s32", "s16"), ("u8", 129, "s32", "u16"), ("s16", 2, "s64", "s32"),
        ("u16", 2, "u32", ""), ("s16", 2, "s32", ""),
    ],
)  # fmt: skip
def test_the_narrowest_type_that_fits(leaf: str, count: int, wide: str, found: str) -> None:
    lines = [f"a{n + 1} = {wide}[64] add({f'a{n}' if n else 'w0'}, w{n + 1})" for n in range(count - 1)]
    text = narrowed(program([leaf] * count, wide, lines, compared(f"a{count - 1}", wide, 2)))
    assert f"{found or wide}[64]" in text and (f"{wide}[64]" in text) == (not found)


def test_what_is_read_twice() -> None:
    """A number that one sum reads, and another sum that the first one reads."""
    lines = ["b = s32[64] add(w0, w1)", "c = s32[64] subtract(b, w0)", "d = s32[64] add(b, c)", "f = s32[64] add(d, b)"]
    text = narrowed(program(["pred", "pred"], "s32", lines, compared("f", "s32", 2)))
    assert "s32" not in text and text.count("s8[64]{0} convert") == 2
    later = ["b = s32[64] add(w0, w1)", "d = s32[64] negate(b)", "f = s32[64] subtract(b, d)"]
    assert "s32" not in narrowed(program(["pred", "pred"], "s32", later, compared("f", "s32", 2)))


def test_what_stays() -> None:
    """Numbers that others need, or that would not be the same in another type."""
    add = ["a = s32[64] add(w0, w1)"]
    shown = "ROOT r = (s32[64], pred[64]) tuple(a, c)"
    kb = "k = s32[] constant(2)\n kb = s32[64] broadcast(k), dimensions={}\n c = pred[64] compare(a, kb), direction=LT"
    assert " s8[" not in narrowed(program(["pred", "pred"], "s32", [*add, kb], shown))
    under = ["a = u32[64] subtract(w0, w1)"]
    assert "u32[64]{0} subtract" in narrowed(program(["u8", "u8"], "u32", under, compared("a", "u32", 2)))
    assert "s32[64]{0} add" in narrowed(program(["pred", "pred"], "s32", add, compared("a", "s32", 1 << 20)))
    both = "ROOT r = pred[64] compare(a, w0), direction=LT"
    assert "s32[64]{0} add" in narrowed(program(["pred", "pred"], "s32", add, both))


@st.composite
def sums(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Programs that compute numbers of one, and compare or convert them."""
    leaves = draw(st.lists(st.sampled_from(list(DTYPES)), min_size=1, max_size=4))
    wide = draw(st.sampled_from(["s32", "u32", "s64", "u64"]))
    names = [f"w{n}" for n in range(len(leaves))]
    lines = []
    for n in range(draw(st.integers(1, 7))):
        op = draw(st.sampled_from(["add", "subtract", "minimum", "maximum", "negate", "select", "reverse", "constant"]))
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        made = {
            "negate": f"v{n} = {wide}[64] negate({a})",
            "reverse": f"v{n} = {wide}[64] reverse({a}), dimensions={{0}}",
            "select": f"g{n} = pred[64] compare(w0, {b}), direction=LT\n v{n} = {wide}[64] select(g{n}, {a}, {b})",
            "constant": f"k{n} = {wide}[] constant({draw(st.integers(0, 300))})\n"
            f" v{n} = {wide}[64] broadcast(k{n}), dimensions={{}}",
        }
        lines.append(made.get(op, f"v{n} = {wide}[64] {op}({a}, {b})"))
        names.append(f"v{n}")
    last = names[-1]
    end = draw(st.sampled_from(["compare", "f32", "u8", "s64"]))
    number = draw(st.integers(0, 600))
    return program(
        leaves,
        wide,
        lines,
        compared(last, wide, number) if end == "compare" else f"ROOT r = {end}[64] convert({last})",
    ), leaves


@settings(max_examples=150)
@given(sums(), st.integers(0, 2**32 - 1))
def test_values(case: tuple[str, list[str]], seed: int) -> None:
    text, leaves = case
    rng = np.random.default_rng(seed)
    values = []
    for t in leaves:
        raw = rng.integers(0, 256, 64 * np.dtype(DTYPES[t]).itemsize, dtype=np.uint8)
        x = (raw & 1).astype(np.bool_) if t == "pred" else raw.view(DTYPES[t]).copy()
        if t != "pred":
            x[:2] = np.iinfo(DTYPES[t]).min, np.iinfo(DTYPES[t]).max
        values.append(x)
    want = evaluate(parse(text), *values)[0]
    module = parse(text)
    run_passes(module, ("integer-narrowing",))
    np.testing.assert_array_equal(evaluate(module, *values)[0], want)


def test_neighbours_are_counted_in_bytes() -> None:
    """A step of the game of life, on the CPU."""
    lines = ["p = pred[64] parameter(0)"]
    lines += ["x0 = pred[63] slice(p), slice={[1:64]}", "y0 = pred[1] slice(p), slice={[0:1]}"]
    lines += ["x1 = pred[1] slice(p), slice={[63:64]}", "y1 = pred[63] slice(p), slice={[0:63]}"]
    lines += [f"z{n} = pred[64] concatenate(x{n}, y{n}), dimensions={{0}}" for n in (0, 1)]
    lines += [f"w{n} = s32[64] convert({v})" for n, v in enumerate(["z0", "z1", "p"])]
    lines += ["a = s32[64] add(w0, w1)", "b = s32[64] add(a, w2)", compared("b", "s32", 2)]
    text = "\n ".join(["HloModule m\nENTRY e {", *lines]) + "\n}"
    compiled = heron.compile(parse(text), "cpu")
    assert "s8[64]" in str(compiled.stage("hlo"))
    p = np.random.default_rng(2).random(64) > 0.5
    counted = p.astype(int) + np.roll(p, 1) + np.roll(p, -1)
    np.testing.assert_array_equal(compiled.run([p])[0], counted < 2)
