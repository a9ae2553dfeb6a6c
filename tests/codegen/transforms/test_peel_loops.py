"""Peeled loops visit the points they visited, in the same order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.analysis.indexing import IndexingMap, format_map, parse_map
from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.codegen.transforms import peel_loops
from heron.codegen.transforms.options import TransformOptions
from tests.codegen.transforms.kernels import run_cpu

KERNEL = """
func.func @k(%o: tensor<1xi64>, %lo: index, %hi: index) -> tensor<1xi64> attributes {{xla_gpu.entry}} {{
  %zero = arith.constant 0 : index
  %base = arith.constant 31 : i64
  %r = xla_gpu.loop (%lo)[%s, %t] -> (%x) in "{map}" iter_args(%acc = %o) -> (tensor<1xi64>) {{
    %v = tensor.extract %acc[%zero] : tensor<1xi64>
    %w = arith.muli %v, %base : i64
    %i = arith.index_cast %x : index to i64
    %n = arith.addi %w, %i : i64
    %z = tensor.insert %n into %acc[%zero] : tensor<1xi64>
    xla_gpu.yield %z : tensor<1xi64>
  }}
  func.return %r : tensor<1xi64>
}}"""


def visited(m: IndexingMap, d: int) -> int:
    """What the kernel makes of the points in order."""
    total = 0
    for dims, syms in m.points():
        if dims == (d,):
            total = (total * 31 + int(m.evaluate(dims, syms)[0]) + 2**63) % 2**64 - 2**63
    return total


def peeled(m: IndexingMap) -> tuple[str, list[IndexingMap]]:
    module = parse_kernel(KERNEL.format(map=format_map(m)))
    peel_loops.run(module, TransformOptions("gpu", verify=True))
    module.verify()
    return str(module), [op.map for op in module.walk() if isinstance(op, LoopOp)]


@settings(max_examples=25)
@given(
    rounds=st.integers(1, 6),
    inner=st.integers(1, 3),
    threads=st.integers(1, 5),
    start=st.integers(-2, 2),
    data=st.data(),
)
def test_the_same_points_in_the_same_order(
    rounds: int, inner: int, threads: int, start: int, data: st.DataObject
) -> None:
    limit = data.draw(st.integers(0, (rounds + start) * threads + threads))
    low = data.draw(st.sampled_from([-100, 0, start * threads]))
    m = parse_map(
        f"(d0)[s0, s1] -> (d0 + s0 * 7 + s1), domain: d0 in [0, {threads - 1}], s0 in [{start}, {start + rounds - 1}],"
        f" s1 in [0, {inner - 1}], d0 + s0 * {threads} in [{low}, {limit}]"
    )
    text, _ = peeled(m)
    for d in {0, threads - 1}:
        out = np.zeros(1, np.int64)
        run_cpu(text, [out], d)
        assert out[0] == visited(m, d)


@pytest.mark.parametrize(("limit", "loops"), [(30, 2), (25, 2), (24, 2), (22, 1), (31, 1)])
def test_one_round_at_most_is_peeled(limit: int, loops: int) -> None:
    m = parse_map(
        f"(d0)[s0, s1] -> (s0), domain: d0 in [0, 7], s0 in [0, 3], s1 in [0, 0], d0 + s0 * 8 in [0, {limit}]"
    )
    _, maps = peeled(m)
    assert len(maps) == loops
    assert (loops == 1) or not maps[0].constraints
