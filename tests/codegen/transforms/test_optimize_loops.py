"""How often an accumulating loop is written out: by the registers that its launch leaves a thread."""

from __future__ import annotations

import pytest

from heron import targets
from heron.codegen.ir.dialects.context import parse_kernel
from heron.codegen.ir.editing import functions
from heron.codegen.kernel import Launch
from heron.codegen.transforms import optimize_loops
from heron.codegen.transforms.options import TransformOptions

KERNEL = """func.func @k(%t: tensor<99999xf32>) -> f32 {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rounds = arith.constant {rounds} : index
  %inner = arith.constant {inner} : index
  %zero = arith.constant 0.0 : f32
  %a = scf.for %r = %c0 to %rounds step %c1 iter_args(%x = %zero) -> (f32) {{
    %s = scf.for %e = %c0 to %inner step %c1 iter_args(%y = %x) -> (f32) {{
      %v = tensor.extract %t[%e] : tensor<99999xf32>
      %n = arith.addf %y, %v : f32
      scf.yield %n : f32
    }}
    scf.yield %s : f32
  }}
  func.return %a : f32
}}"""


def options(blocks: int, threads: int = 128) -> TransformOptions:
    return TransformOptions("gpu", device=targets.get("sm_90"), launches={"k": Launch((blocks, 1, 1), (threads, 1, 1))})


@pytest.mark.parametrize(
    ("blocks", "threads", "bytes_"),
    [
        (1, 128, 510),  # 255 registers are the most
        (132, 256, 510),
        (264, 256, 256),  # 512 threads a core: 128 registers
        (132, 1024, 128),
        (10000, 128, 64),  # 2048 threads a core: 32 registers
    ],
)
def test_room_is_half_of_the_registers(blocks: int, threads: int, bytes_: int) -> None:
    (function,) = functions(parse_kernel(KERNEL.format(rounds=6, inner=16)))
    assert optimize_loops.in_flight(function, options(blocks, threads)) == bytes_
    assert optimize_loops.in_flight(function, TransformOptions("gpu")) == 64


@pytest.mark.parametrize(
    ("rounds", "inner", "blocks", "times"),
    [
        (6, 16, 10000, 1),
        (6, 16, 16, 6),  # 7 have room
        (6, 32, 16, 3),
        (6, 25, 16, 3),  # 5 have room, 3 divide the rounds
        (7, 25, 16, 1),
        (6, 200, 16, 1),
        (6, 8, 10000, None),  # 32 bytes: for LLVM to decide
    ],
)
def test_times(rounds: int, inner: int, blocks: int, times: int | None) -> None:
    module = parse_kernel(KERNEL.format(rounds=rounds, inner=inner))
    optimize_loops.run(module, options(blocks))
    marks = [op.attributes["heron.unroll"] for op in module.walk() if "heron.unroll" in op.attributes]
    assert [m.value.data for m in marks] == ([] if times is None else [times])  # type: ignore[attr-defined]


def test_cpu_loops_are_left_alone() -> None:
    module = parse_kernel(KERNEL.format(rounds=6, inner=16))
    optimize_loops.run(module, TransformOptions("cpu"))
    assert "unroll" not in str(module)
