"""Fusions that only move blocks of bytes are copies on the CPU: no kernel, and every byte in its place."""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron import targets
from heron.analysis.fusion.moved_blocks import moved_blocks
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse

RNG = np.random.default_rng(4)
TYPES: dict[str, Any] = {
    "pred": np.bool_,
    "s8": np.int8,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "c64": np.complex64,
    "c128": np.complex128,
}


def check(text: str) -> Any:
    """The program, whose values are the evaluator's."""
    module = parse(text)
    inputs = [_values(p.shape.element_type.name, p.shape.dims) for p in module.entry.parameters]
    program = compile(parse(text), targets.get("cpu"))
    for found, wanted in zip(program.run(inputs), evaluate(module, *inputs), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.asarray(wanted))
    return program


def _values(name: str, dims: tuple[int, ...]) -> np.ndarray:
    return RNG.integers(-99, 99, dims).astype(TYPES[name])


def kinds(program: Any) -> list[str]:
    return [line.split(" ", 1)[0] for line in program.stage("thunks").splitlines()]


@pytest.mark.parametrize(
    "body",
    [
        "ROOT r = f32[6] slice(x), slice={[2:8]}",
        "ROOT r = f32[1,3] slice(m), slice={[2:3], [0:3]}",
        "ROOT r = f32[2,3] slice(m), slice={[2:4], [0:3]}",
        "ROOT r = f32[22] concatenate(x, x, y), dimensions={0}",
        "a = f32[3] slice(x), slice={[0:3]} b = f32[5] slice(x), slice={[3:8]} "
        "ROOT r = f32[8] concatenate(b, a), dimensions={0}",
        "a = f32[12] reshape(m) ROOT r = f32[20] concatenate(a, x), dimensions={0}",
        "a = f32[14] concatenate(x, y), dimensions={0} b = f32[8] slice(a), slice={[4:12]} "
        "c = f32[6] slice(a), slice={[0:6]} ROOT r = (f32[8], f32[6]) tuple(b, c)",
        "ROOT r = f32[7,3] concatenate(m, n), dimensions={0}",
    ],
)
def test_blocks_are_copied(body: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[8] parameter(0)
  y = f32[6] parameter(1)
  m = f32[4,3] parameter(2)
  n = f32[3,3] parameter(3)
  {body}
}}"""
    assert set(kinds(check(text))) == {"copy"}


@pytest.mark.parametrize(
    "body",
    [
        "ROOT r = f32[4] slice(x), slice={[0:8:2]}",
        "ROOT r = f32[4,2] slice(m), slice={[0:4], [1:3]}",
        "a = f32[4,2] slice(m), slice={[0:4], [0:2]} ROOT r = f32[4,5] concatenate(m, a), dimensions={1}",
        "a = f32[6] add(y, y) ROOT r = f32[14] concatenate(x, a), dimensions={0}",
    ],
)
def test_other_fusions_are_kernels(body: str) -> None:
    text = f"""HloModule m
ENTRY e {{
  x = f32[8] parameter(0)
  y = f32[6] parameter(1)
  m = f32[4,3] parameter(2)
  {body}
}}"""
    assert "kernel" in kinds(check(text))


@pytest.mark.parametrize("count", [2, 16, 17, 300])
@pytest.mark.parametrize("size", [0, 1, 5, 4001])
def test_any_number_of_arrays_of_any_size(count: int, size: int) -> None:
    """Many are copied by a table, and large ones in pieces that threads share."""
    sizes = [size + n % 3 for n in range(count)]
    given_ = "".join(f"p{n} = s8[{size}] parameter({n})\n" for n, size in enumerate(sizes))
    joined = f"concatenate({', '.join(f'p{n}' for n in range(count))}), dimensions={{0}}"
    check(f"HloModule m\nENTRY e {{ {given_} ROOT r = s8[{sum(sizes)}] {joined} }}")


@pytest.mark.parametrize("shift", [1, 3_000_001])
def test_large_arrays_are_cut(shift: int) -> None:
    size = 5_000_003
    text = f"""HloModule m
ENTRY e {{
  x = s8[{size}] parameter(0)
  a = s8[{shift}] slice(x), slice={{[0:{shift}]}}
  b = s8[{size - shift}] slice(x), slice={{[{shift}:{size}]}}
  ROOT r = s8[{size}] concatenate(b, a), dimensions={{0}}
}}"""
    assert set(kinds(check(text))) == {"copy"}


def test_a_result_in_the_place_of_what_it_is_made_of() -> None:
    """The halves of a donated array change places."""
    text = """HloModule m, input_output_alias={ {}: (0, {}, must-alias) }
ENTRY e {
  x = f32[8] parameter(0)
  a = f32[3] slice(x), slice={[0:3]}
  b = f32[5] slice(x), slice={[3:8]}
  ROOT r = f32[8] concatenate(b, a), dimensions={0}
}"""
    check(text)


def test_in_a_loop() -> None:
    check("""HloModule m
cond { p = (s32[], f32[9]) parameter(0) n = s32[] get-tuple-element(p), index=0 k = s32[] constant(4)
  ROOT r = pred[] compare(n, k), direction=LT }
body {
  p = (s32[], f32[9]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[9] get-tuple-element(p), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  a = f32[2] slice(x), slice={[0:2]}
  b = f32[7] slice(x), slice={[2:9]}
  c = f32[9] concatenate(b, a), dimensions={0}
  ROOT r = (s32[], f32[9]) tuple(m, c)
}
ENTRY e {
  x = f32[9] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[9]) tuple(zero, x)
  w = (s32[], f32[9]) while(s), condition=cond, body=body
  ROOT r = f32[9] get-tuple-element(w), index=1
}""")


@st.composite
def _programs(draw: st.DrawFn) -> str:
    """Programs of slices, concatenations and reshapes of a few arrays, with several results."""
    kind = draw(st.sampled_from(sorted(TYPES)))
    values = [tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))) for _ in range(draw(st.integers(1, 3)))]
    lines = [f"v{n} = {kind}[{_text(dims)}] parameter({n})" for n, dims in enumerate(values)]

    def add(dims: tuple[int, ...], text: str) -> None:
        lines.append(f"v{len(values)} = {kind}[{_text(dims)}] {text}")
        values.append(dims)

    for _ in range(draw(st.integers(1, 6))):
        n = draw(st.integers(0, len(values) - 1))
        dims = values[n]
        match draw(st.sampled_from(["slice", "concatenate", "reshape"])):
            case "slice":
                bounds = [sorted(draw(st.tuples(st.integers(0, k), st.integers(0, k)))) for k in dims]
                cut = ", ".join(f"[{a}:{b}]" for a, b in bounds)
                add(tuple(b - a for a, b in bounds), f"slice(v{n}), slice={{{cut}}}")
            case "concatenate" if dims:
                d = draw(st.integers(0, len(dims) - 1))
                fits = [m for m, other in enumerate(values) if _without(other, d) == _without(dims, d)]
                parts = draw(st.lists(st.sampled_from(fits), min_size=1, max_size=4))
                size = sum(values[m][d] for m in parts)
                operands = ", ".join(f"v{m}" for m in parts)
                add((*dims[:d], size, *dims[d + 1 :]), f"concatenate({operands}), dimensions={{{d}}}")
            case _:
                add((prod(dims),), f"reshape(v{n})")
    results = draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=3))
    shapes = ", ".join(f"{kind}[{_text(values[n])}]" for n in results)
    lines.append(f"ROOT r = ({shapes}) tuple({', '.join(f'v{n}' for n in results)})")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


def _text(dims: tuple[int, ...]) -> str:
    return ",".join(map(str, dims))


def _without(dims: tuple[int, ...], d: int) -> tuple[object, ...]:
    return (len(dims), *dims[:d], *dims[d + 1 :])


@given(_programs())
def test_every_byte_in_its_place(text: str) -> None:
    check(text)


@st.composite
def _rows(draw: st.DrawFn) -> str:
    """Programs that put many pieces of rows side by side: of whole arrays, columns, columns as vectors, other joins."""
    kind, rows = draw(st.sampled_from(sorted(TYPES))), draw(st.integers(2, 70))
    widths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=3))
    lines = [f"x{n} = {kind}[{rows},{width}] parameter({n})" for n, width in enumerate(widths)]
    pieces: list[tuple[str, int]] = []
    for k in range(draw(st.integers(9, 20))):
        n = draw(st.integers(0, len(widths) - 1))
        first, last = sorted(draw(st.tuples(st.integers(0, widths[n] - 1), st.integers(1, widths[n]))))
        last = max(last, first + 1)
        match draw(st.sampled_from(["whole", "columns", "vector"])):
            case "whole":
                pieces.append((f"x{n}", widths[n]))
                continue
            case "vector":
                last = first + 1
        lines.append(f"s{k} = {kind}[{rows},{last - first}] slice(x{n}), slice={{[0:{rows}], [{first}:{last}]}}")
        pieces.append((f"s{k}", last - first))
        if last - first == 1:
            lines.append(f"v{k} = {kind}[{rows}] reshape(s{k})\nw{k} = {kind}[{rows},1] reshape(v{k})")
            pieces[-1] = (f"w{k}", 1)
    joined = ", ".join(name for name, _ in pieces)
    total = sum(size for _, size in pieces)
    lines.append(f"ROOT r = {kind}[{rows},{total}] concatenate({joined}), dimensions={{1}}")
    return "HloModule m\nENTRY e {\n" + "\n".join(lines) + "\n}"


@given(_rows())
def test_every_piece_of_a_row_in_its_place(text: str) -> None:
    check(text)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 100])
def test_pieces_of_every_size(size: int) -> None:
    """Each size has words of its own, and nothing is written behind the last row."""
    count, rows = 11, 133
    given_ = "".join(f"p{n} = s8[{rows},{size}] parameter({n})\n" for n in range(count))
    joined = f"concatenate({', '.join(f'p{n}' for n in range(count))}), dimensions={{1}}"
    text = f"HloModule m\nENTRY e {{ {given_} ROOT r = s8[{rows},{size * count}] {joined} }}"
    assert kinds(check(text)) == ["copy"]


def test_rows_of_many_computed_pieces_are_loops_over_each() -> None:
    """To choose the piece for every element takes ten times as long."""
    lines = "".join(
        f"c{n} = f32[] constant({n}) b{n} = f32[50,3] broadcast(c{n}), dimensions={{}} m{n} = f32[50,3] multiply(x, b{n})\n"
        for n in range(10)
    )
    joined = f"concatenate({', '.join(f'm{n}' for n in range(10))}), dimensions={{1}}"
    text = f"HloModule m\nENTRY e {{ x = f32[50,3] parameter(0) {lines} ROOT r = f32[50,30] {joined} }}"
    program = check(text)
    assert program.stage("mlir").count("scf.for") >= 10


def test_a_table_has_an_end() -> None:
    """An array joined to itself again and again has more blocks than a table is worth."""
    steps = "".join(f"v{n + 1} = s8[{2 << n}] concatenate(v{n}, v{n}), dimensions={{0}}\n" for n in range(17))
    text = f"HloModule m\nENTRY e {{ v0 = s8[1] parameter(0)\n{steps} ROOT r = s8[{1 << 17}] reshape(v17) }}"
    fusion = parse(
        f"HloModule m\nbody {{ v0 = s8[1] parameter(0)\n{steps} ROOT r = s8[{1 << 17}] reshape(v17) }}\n"
        f"ENTRY e {{ x = s8[1] parameter(0) ROOT f = s8[{1 << 17}] fusion(x), kind=kLoop, calls=body }}"
    )
    assert moved_blocks(fusion.entry.root) is None
    check(text)
