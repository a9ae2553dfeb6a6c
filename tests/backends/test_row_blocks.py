"""Products and the kernels around them, done a block of rows at a time: the values of one step after the other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import heron
from heron import Options
from heron.analysis.fusion.row_blocks import RowBlocks, row_blocks_of
from heron.backends.compiler import Compilation
from heron.backends.cpu import machine, pipeline
from heron.codegen.native import float_gemm, pool_code
from heron.compiling import compile
from heron.hlo.ir.types import BF16, F32
from heron.passes.framework.base import Pass
from heron.passes.fusion import row_block_fusion
from heron.passes.fusion.row_block_fusion import RowBlockFusion
from heron.runtime.cpu.executable import CpuExecutable
from heron.runtime.thunks import RowBlocksThunk, walk
from heron.targets import get as target
from heron.trace import Trace

pytestmark = [
    pytest.mark.skipif(float_gemm.form(F32) is None, reason="products here are a library's"),
    pytest.mark.skipif(not pool_code.supported(), reason="the pool needs Linux on x86-64 or AArch64"),
]

REDUCERS = """
largest {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] maximum(a, b)
}

total {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}
"""

ACTIVATION = """HloModule m

ENTRY e {
  x = f32[70,40] parameter(0)
  w = f32[40,192] parameter(1)
  b = f32[192] parameter(2)
  r = f32[70,192] parameter(3)
  d = f32[70,192] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[70,192] broadcast(b), dimensions={1}
  s = f32[70,192] add(d, bb)
  t = f32[70,192] tanh(s)
  u = f32[70,192] multiply(t, s)
  ROOT o = f32[70,192] add(u, r)
}
"""

#: the residual's buffer is free when the fusion runs: the output is in its place
IN_PLACE = ACTIVATION.replace(
    "r = f32[70,192] parameter(3)",
    'p = f32[70,192] parameter(3)\n  r = f32[70,192] sine(p), frontend_attributes={nofuse="true"}',
)

GATED = """HloModule m

ENTRY e {
  x = f32[2,50,40] parameter(0)
  w = f32[2,40,64] parameter(1)
  v = f32[2,64,40] parameter(2)
  d = f32[2,50,64] dot(x, w), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  g = f32[2,50,64] dot(x, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  t = f32[2,50,64] logistic(d)
  ROOT o = f32[2,50,64] multiply(t, g)
}
"""

SOFTMAX = f"""HloModule m
{REDUCERS}
ENTRY e {{
  q = f32[3,50,16] parameter(0)
  k = f32[3,70,16] parameter(1)
  v = f32[3,70,24] parameter(2)
  d = f32[3,50,70] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
  low = f32[] constant(-inf)
  m = f32[3,50] reduce(d, low), dimensions={{2}}, to_apply=largest
  mb = f32[3,50,70] broadcast(m), dimensions={{0,1}}
  c = f32[3,50,70] subtract(d, mb)
  e = f32[3,50,70] exponential(c)
  zero = f32[] constant(0)
  s = f32[3,50] reduce(e, zero), dimensions={{2}}, to_apply=total
  sb = f32[3,50,70] broadcast(s), dimensions={{0,1}}
  p = f32[3,50,70] divide(e, sb)
"""
LAST = "dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"
ATTENTION = SOFTMAX + f"  ROOT o = f32[3,50,24] {LAST}\n}}\n"
SAVED = (
    SOFTMAX
    + f"  o = f32[3,50,24] {LAST}\n  t = f32[3,50,24] tanh(o)\n  ROOT r = (f32[3,50,70], f32[3,50,24]) tuple(p, t)\n}}\n"
)
TURNED = (
    SOFTMAX
    + "  ROOT o = f32[3,24,50] dot(v, p), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
    + "rhs_contracting_dims={2}\n}\n"
)
NARROW = ATTENTION.replace("f32[3,50,16]", "bf16[3,50,16]").replace("f32[3,70,16]", "bf16[3,70,16]")
PROGRAMS = {
    "activation": ACTIVATION,
    "in place": IN_PLACE,
    "gated": GATED,
    "attention": ATTENTION,
    "saved": SAVED,
    "turned": TURNED,
    "bf16": NARROW,
}


#: the pass in the CPU's pipeline
PLACE = "fusion.row_block_fusion"


def _always(patch: pytest.MonkeyPatch, block: int, width: int) -> None:
    """Fusions of arrays of any size, whatever they cost, in blocks of so many rows and columns (0: whole rows)."""

    whole = row_block_fusion._Group.blocks

    def blocks(group: Any, p: Any) -> RowBlocks:
        cut = whole(group, replace(p, columns=width or 64))
        return replace(cut, block=min(block, cut.rows), width=cut.width if width else 0)

    late = pipeline.Late

    def eager(place: str, *looks_for: Any, **options: Any) -> Pass:
        """The pipeline's step; that of row blocks with no least size, and calls for nothing."""
        return RowBlockFusion(least=1, calls=0, **options) if place == PLACE else late(place, *looks_for, **options)

    patch.setattr(pipeline, "Late", eager)
    patch.setattr(machine, "_pipelines", machine._pipelines.__wrapped__)  # with that pass, not one made before
    patch.setattr(row_block_fusion._Group, "blocks", blocks)
    patch.setattr(row_block_fusion._Group, "again", lambda group, cut: 0)
    patch.setattr(row_block_fusion._Group, "beside", lambda group, cut: 0)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`_always` for a test."""
    return partial(_always, monkeypatch)


def _arguments(module: heron.Module) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    shapes = [p.shape for p in module.entry.parameters]
    return [rng.standard_normal(s.dims).astype(s.element_type.dtype) for s in shapes]


def _run(text: str, threads: int = 2) -> tuple[list[np.ndarray], CpuExecutable]:
    module = heron.parse(text)
    made = compile(module, "cpu", Options(threads=threads))
    assert isinstance(made, CpuExecutable)
    return made.run(_arguments(module)), made


def _thunks(text: str) -> list[RowBlocksThunk]:
    compilation = Compilation(heron.parse(text), target("cpu"), Options(), Trace())
    return [t for t in walk(compilation.lowered[0]) if isinstance(t, RowBlocksThunk)]


@pytest.mark.parametrize("block, width", [(7, 64), (24, 0), (1, 32)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_are_those_of_the_steps(name: str, block: int, width: int, always: Any) -> None:
    if name == "bf16" and float_gemm.form(BF16) is None:
        pytest.skip("no instruction for products of bf16")
    apart, _ = _run(PROGRAMS[name], threads=1)
    always(block, width)
    thunks = _thunks(PROGRAMS[name])
    assert len(thunks) == 1 and thunks[0].cut.block == min(block, thunks[0].cut.rows)
    together, _ = _run(PROGRAMS[name], threads=3)
    assert [a.tobytes() for a in together] == [a.tobytes() for a in apart]


def test_scores_never_become_a_matrix(always: Any) -> None:
    _, apart = _run(ATTENTION)
    always(10, 0)
    _, made = _run(ATTENTION)
    assert apart.memory["temp"] >= 3 * 50 * 70 * 4
    assert made.memory["temp"] == 64 + 2 * 2816  # a block of 10 rows for each thread, in whole cache lines
    (decision,) = [d for d in made.trace.decisions if d.rule == "row-block-fusion" and d]
    assert "stay in caches" in decision.reason and decision.cost_before == 4 * 3 * 50 * 70 * 4


def test_an_output_takes_the_place_of_what_is_read_in_step(always: Any) -> None:
    always(7, 64)
    _, made = _run(IN_PLACE)
    (thunk,) = _thunks(IN_PLACE)
    assert thunk.block_bytes  # the product is elsewhere than the output, where the residual still is
    assert made.memory["temp"] == 64 + 2 * sum(thunk.block_bytes.values())


@pytest.mark.parametrize("donated", [False, True])
def test_what_lives_on_is_not_kept_free_for_an_output(donated: bool, always: Any) -> None:
    """The residual is the caller's: the output cannot take its place, so that the product is computed there."""
    always(7, 64)
    alias = ", input_output_alias={ {}: (3, {}, may-alias) }" if donated else ""
    (thunk,) = _thunks(ACTIVATION.replace("HloModule m", f"HloModule m{alias}"))
    assert bool(thunk.block_bytes) == donated


def test_a_large_product_is_fused_as_it_is() -> None:
    text = ACTIVATION.replace("70", "512").replace("192", "512")
    (thunk,) = _thunks(text)
    assert thunk.cut.width == 64 and str(thunk.cut) in compile(heron.parse(text), "cpu").stage("thunks")


def test_the_config_is_read_as_it_was_written() -> None:
    module = heron.parse(ACTIVATION.replace("70", "512").replace("192", "512"))
    fused = Compilation(module, target("cpu"), Options(), Trace()).passes("fused")
    again = heron.parse(str(fused))
    found = [[c for i in m.entry.instructions if (c := row_blocks_of(i))] for m in (fused, again)]
    assert found[0] == found[1] and len(found[0]) == 1


@st.composite
def chains(draw: st.DrawFn) -> str:
    """A product, elementwise ops and reductions of its rows, perhaps another product, results of any of them."""
    batch = draw(st.sampled_from([(), (2,), (2, 3)]))
    m, n, k, p = (draw(st.integers(least, most)) for least, most in ((4, 40), (4, 70), (1, 20), (4, 9)))
    b = ",".join(map(str, range(len(batch))))
    left, right = draw(st.booleans()), draw(st.booleans())
    rank = len(batch)

    def shape(*dims: int) -> str:
        return f"f32[{','.join(map(str, (*batch, *dims)))}]"

    def product(x: str, y: str, first: int, second: int) -> str:
        dims = f"lhs_contracting_dims={{{rank + first}}}, rhs_contracting_dims={{{rank + second}}}"
        return f"dot({x}, {y}), lhs_batch_dims={{{b}}}, rhs_batch_dims={{{b}}}, {dims}"

    rows, full = shape(m), shape(m, n)
    spread = ",".join(map(str, range(rank + 1)))
    lines = [
        f"x = {shape(k, m) if left else shape(m, k)} parameter(0)",
        f"y = {shape(n, k) if right else shape(k, n)} parameter(1)",
        f"c = f32[{n}] parameter(2)",
        f"z = {full} parameter(3)",
        f"w = {shape(n, p)} parameter(4)",
        "zero = f32[] constant(0)",
        f"s0 = {full} {product('x', 'y', int(not left), int(right))}",
    ]
    last = "s0"
    for step in range(1, draw(st.integers(1, 4)) + 1):
        kind = draw(st.sampled_from(["bias", "add", "tanh", "select", "center", "largest", "narrow"]))
        at = f"s{step}"
        if kind == "bias":
            lines += [
                f"b{step} = {full} broadcast(c), dimensions={{{rank + 1}}}",
                f"{at} = {full} add({last}, b{step})",
            ]
        elif kind == "add":
            lines.append(f"{at} = {full} multiply(z, {last})")
        elif kind == "tanh":
            lines.append(f"{at} = {full} tanh({last})")
        elif kind == "select":
            lines += [
                f"i{step} = s32[{m},{n}] iota(), iota_dimension=0",
                f"j{step} = s32[{m},{n}] iota(), iota_dimension=1",
                f"q{step} = pred[{m},{n}] compare(i{step}, j{step}), direction=GE",
                f"p{step} = {full.replace('f32', 'pred')} broadcast(q{step}), dimensions={{{rank},{rank + 1}}}",
                f"{at} = {full} select(p{step}, {last}, z)",
            ]
        elif kind == "narrow":
            lines += [f"n{step} = {full.replace('f32', 'bf16')} convert({last})", f"{at} = {full} convert(n{step})"]
        else:
            reducer = "total" if kind == "center" else "largest"
            lines += [
                f"r{step} = {rows} reduce({last}, zero), dimensions={{{rank + 1}}}, to_apply={reducer}",
                f"b{step} = {full} broadcast(r{step}), dimensions={{{spread}}}",
                f"{at} = {full} subtract({last}, b{step})",
            ]
        last = at
    results = [(full, last)]
    if draw(st.booleans()):
        lines.append(f"o = {shape(m, p)} {product(last, 'w', 1, 0)}")
        results = [*results[: draw(st.integers(0, 1))], (shape(m, p), "o")]
    if draw(st.booleans()):
        results.append((full, "s0"))
    types, names = zip(*results, strict=True)
    lines.append(f"ROOT result = ({', '.join(types)}) tuple({', '.join(names)})")
    body = "\n  ".join(lines).replace("lhs_batch_dims={}, rhs_batch_dims={}, ", "")
    return f"HloModule m\n{REDUCERS}\nENTRY e {{\n  {body}\n}}\n"


@settings(max_examples=6)
@given(chains(), st.integers(1, 50), st.sampled_from([0, 4, 8]))
def test_any_chain(text: str, block: int, width: int) -> None:
    apart, _ = _run(text, threads=1)
    with pytest.MonkeyPatch.context() as patch:
        _always(patch, block, width)
        together, _ = _run(text, threads=2)
    assert [a.tobytes() for a in together] == [a.tobytes() for a in apart]
