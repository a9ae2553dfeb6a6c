"""Conversions XLA:CPU cannot be asked about: at random, and of integers of one bit (conformance has the others)."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.builder import Builder
from heron.hlo.ir import types
from heron.hlo.ir.shape import row_major
from heron.hlo.proto import from_proto, to_proto
from heron.hlo.text import parse
from tests.hlo.ops.agree import program


def test_stochastic_convert_rounds_up_as_often_as_the_fraction_says() -> None:
    n = 4096
    text = program(
        f" p = f32[{n}] parameter(0)\n u = u32[{n}] parameter(1)\n ROOT r = s32[{n}] stochastic-convert(p, u)"
    )
    random = np.random.default_rng(0).integers(0, 1 << 32, n, dtype=np.uint32)
    (up,) = evaluate(parse(text), np.full(n, -2.25, np.float32), random)
    assert set(up.tolist()) == {-2, -3}
    assert abs((up == -3).mean() - 0.25) < 0.03
    (ends,) = evaluate(parse(text), np.resize(np.array([np.nan, np.inf, -np.inf, 5.0], np.float32), n), random)
    assert ends[:4].tolist() == [0, 2**31 - 1, -(2**31), 5]


BITS = {"s1": [0, -1], "u1": [0, 1]}


@pytest.mark.parametrize("name", BITS)
def test_one_bit_converts_to_and_from_every_type(name: str) -> None:
    low, high = BITS[name]
    for t in types.ALL:
        if not t.byte_size:
            continue
        b = Builder("convert")
        there = b.convert(b.constant(np.array(BITS[name]), types.by_name(name)), shape=row_major(t, 2))
        back = b.convert(there, shape=row_major(types.by_name(name), 2))
        value, same = evaluate(b.build(b.tuple(there, back)))
        if t.kind == "pred" or t in (types.S1, types.U1):
            assert np.array_equal(value.astype(np.int8) != 0, [False, True]), t
        elif t.is_unsigned:
            assert value.tolist() == [0, high % (1 << t.bits)], t
        elif t is not types.F8E8M0FNU:  # which has neither 0 nor -1
            assert value.astype(np.complex128).tolist() == [low, high], t
            assert same.tolist() == BITS[name], t


ONE_BIT = {
    "convert(f)": ("f32", [-7.5, -1.0, -0.5, 0.0, 0.5, 1.0, 7.5, np.nan], [-1, -1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 0]),
    "convert(i)": ("s32", [-3, -2, -1, 0, 1, 2, 3, 4], [-1, 0, -1, 0, -1, 0, -1, 0], [1, 0, 1, 0, 1, 0, 1, 0]),
}  # fmt: skip


@pytest.mark.parametrize("form", ONE_BIT)
def test_to_one_bit_integers_wrap_and_floats_saturate(form: str) -> None:
    source, values, signed, unsigned = ONE_BIT[form]
    letter = form[-2]
    text = program(
        f" {letter} = {source}[8] parameter(0)\n a = s1[8] {form}\n b = u1[8] {form}\n ROOT t = (s1[8], u1[8]) tuple(a, b)"
    )
    got = evaluate(parse(text), np.array(values, types.by_name(source).dtype))
    assert [g.tolist() for g in got] == [signed, unsigned]


@pytest.mark.parametrize("name", BITS)
def test_arithmetic_of_one_bit_wraps(name: str) -> None:
    t, (zero, one) = types.by_name(name), BITS[name]
    tables = {
        "add": [zero, one, one, zero],
        "subtract": [zero, one, one, zero],
        "multiply": [zero, zero, zero, one],
        "divide": [one, zero, one, one],
        "remainder": [zero, zero, one, zero],
        "and": [zero, zero, zero, one],
        "xor": [zero, one, one, zero],
        "maximum": [zero, max(zero, one), max(zero, one), one],
        "shift-left": [zero, zero, one, zero],
        "shift-right-arithmetic": [zero, zero, one, one],
        "shift-right-logical": [zero, zero, one, zero],
    }
    x, y = np.array([zero, zero, one, one]).astype(t.dtype), np.array([zero, one, zero, one]).astype(t.dtype)
    lines = [f" r{n} = {name}[4] {op}(x, y)" for n, op in enumerate(tables)]
    lines += [f" n = {name}[4] negate(x)", f" m = {name}[4] not(x)", f" c = {name}[4] popcnt(x)"]
    results = [*(f"r{n}" for n in range(len(tables))), "n", "m", "c"]
    shapes = ", ".join(f"{name}[4]" for _ in results)
    body = f" x = {name}[4] parameter(0)\n y = {name}[4] parameter(1)\n" + "\n".join(lines)
    got = evaluate(parse(program(f"{body}\n ROOT t = ({shapes}) tuple({', '.join(results)})")), x, y)
    assert {op: g.tolist() for op, g in zip(tables, got, strict=False)} == tables
    assert [g.tolist() for g in got[-3:]] == [[zero, zero, one, one], [one, one, zero, zero], [zero, zero, one, one]]


@pytest.mark.parametrize("name", BITS)
def test_one_bit_literals_iotas_and_bits(name: str) -> None:
    zero, one = BITS[name]
    module = parse(
        program(
            f" a = {name}[2,4] constant({{{{{zero}, {one}, {one}, {zero}}}, {{{one}, {one}, {one}, {one}}}}})\n"
            f" i = {name}[3] iota(), iota_dimension=0\n b = u4[2] bitcast-convert(a)\n"
            f" u = u8[1] constant({{165}})\n c = {name}[1,8] bitcast-convert(u)\n d = u8[1] bitcast-convert(c)\n"
            f" ROOT t = ({name}[2,4], {name}[3], u4[2], {name}[1,8], u8[1]) tuple(a, i, b, c, d)"
        )
    )
    literal = [[zero, one, one, zero], [one, one, one, one]]
    for again in (module, from_proto(to_proto(module)), parse(str(module))):
        values = [v.tolist() for v in evaluate(again)]
        bits = [[one if 165 >> k & 1 else zero for k in range(8)]]
        assert values == [literal, [zero, one, zero], [6, 15], bits, [165]]
