"""Loops over indexing maps become scf nests."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import UnitAttr

from heron.analysis.indexing import parse_map
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from tests.codegen.transforms.kernels import apply, parse_kernel, run_cpu

STEP = "lower-xla-gpu-to-scf"


def kernel(map_: str, dims: int, syms: int) -> str:
    names = ", ".join(f"%s{i}" for i in range(syms))
    operands = ", ".join(["%lo"] * dims)
    return f"""
func.func @k(%o: tensor<64xi32>, %lo: index, %hi: index) -> tensor<64xi32> attributes {{xla_gpu.entry}} {{
  %one = arith.constant 1 : i32
  %r = xla_gpu.loop ({operands})[{names}] -> (%x) in "{map_}" iter_args(%acc = %o) -> (tensor<64xi32>) {{
    %v = tensor.extract %acc[%x] : tensor<64xi32>
    %n = arith.addi %v, %one : i32
    %z = tensor.insert %n into %acc[%x] : tensor<64xi32>
    xla_gpu.yield %z : tensor<64xi32>
  }}
  func.return %r : tensor<64xi32>
}}"""


@pytest.mark.parametrize(
    "map_",
    [
        "()[s0] -> (s0), domain: s0 in [0, 63]",
        "()[s0] -> (s0), domain: s0 in [5, 5]",
        "()[s0, s1] -> (s0 * 8 + s1), domain: s0 in [0, 7], s1 in [0, 7]",
        "()[s0, s1] -> (s0 * 8 + s1), domain: s0 in [0, 7], s1 in [0, 7], s0 + s1 in [0, 9]",
        "()[s0, s1] -> (s0 * 8 + s1), domain: s0 in [0, 7], s1 in [0, 7], s0 + s1 in [3, 9]",
        "()[s0, s1] -> (s0 * 8 + s1), domain: s0 in [0, 7], s1 in [0, 7], s0 * 8 + s1 in [0, 50], s1 mod 3 in [0, 1]",
        "(d0)[s0, s1] -> (s0 * 8 + s1 + d0), domain: d0 in [2, 2], s0 in [0, 6], s1 in [0, 7], d0 * 3 + s0 in [0, 8]",
        "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 63], d0 mod 4 in [0, 1]",
        "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 63], d0 * 2 in [0, 5]",
        "(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 63], d0 * 10 + s0 in [0, 80], d0 + s0 * 2 in [0, 70]",
        "()[s0, s1, s2] -> ((s0 + s1 * s2) mod 64), domain: s0 in [0, 7], s1 in [0, 7], s2 in [1, 1]".replace(
            "s1 * s2", "s1 * 3 + s2"
        ),
    ],
)
def test_every_point_once(map_: str) -> None:
    m = parse_map(map_)
    for lo in range(m.dims[0].lo, m.dims[0].hi + 1, 2) if m.dims else (0,):
        out, want = np.zeros(64, np.int32), np.zeros(64, np.int32)
        run_cpu(kernel(map_, m.num_dims, len(m.syms)), [out], lo, 0)
        for dims, syms in m.points():
            if not m.num_dims or dims == (lo,):
                want[m.evaluate(dims, syms)[0]] += 1
        np.testing.assert_array_equal(out, want)


def test_known_empty_loop_goes() -> None:
    text = apply(kernel("()[s0] -> (s0), domain: s0 in [0, 3], s0 in [9, 12]", 0, 1), STEP)
    assert "scf.for" not in text and "func.return %o" in text


def test_one_iteration_has_no_loop() -> None:
    assert "scf" not in apply(kernel("()[s0] -> (s0), domain: s0 in [5, 5]", 0, 1), STEP)


def test_constraints_are_bounds_on_cpu_and_ifs_on_gpu() -> None:
    text = kernel("(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 63], d0 * 10 + s0 in [0, 80]", 1, 1)
    cpu, gpu = apply(text, STEP), apply(text, STEP, "gpu")
    assert "arith.minsi" in cpu and "scf.if" not in cpu
    assert "arith.minsi" not in gpu and "scf.if" in gpu


def test_constraint_stands_outside_the_loops_it_does_not_need() -> None:
    text = apply(kernel("(d0)[s0] -> (s0), domain: d0 in [0, 4], s0 in [0, 63], d0 mod 4 in [0, 1]", 1, 1), STEP)
    assert text.index("scf.if") < text.index("scf.for")


def test_loops_of_a_nest_keep_its_marks() -> None:
    text = kernel("()[s0, s1] -> (s0 * 8 + s1), domain: s0 in [0, 7], s1 in [0, 7]", 0, 2)
    module = parse_kernel(text)
    (loop,) = (op for op in module.walk() if isinstance(op, LoopOp))
    loop.attributes["heron.full_unroll"] = UnitAttr()
    lowered = str(pipeline.run(module, TransformOptions("cpu", verify=True), [pipeline.find(STEP)]))
    assert lowered.count("scf.for") == lowered.count("heron.full_unroll") == 2
