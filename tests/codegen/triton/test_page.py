"""The example of docs/understand/triton.md is what the compiler does."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from heron import targets
from heron.analysis.blocks.config import config_of
from heron.analysis.blocks.tiling import Tiling
from heron.backends.compiler import Compilation
from heron.codegen.emit import emit_fusion
from heron.codegen.triton.text import to_ttir
from heron.hlo.ir.instruction import Instruction
from heron.hlo.text import parse
from heron.options import Options
from heron.trace import Trace

PAGE = Path(__file__).parents[3] / "docs" / "understand" / "triton.md"
PROGRAM = """\
HloModule scaled

ENTRY main {
  x = s8[512,1024] parameter(0)
  w = bf16[1024,512] parameter(1)
  b = bf16[512] parameter(2)
  c = bf16[512,1024] convert(x)
  d = bf16[512,512] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = bf16[512,512] broadcast(b), dimensions={1}
  ROOT s = bf16[512,512] add(d, bb)
}
"""


def example() -> str:
    """A program, its fusion, the tiles of all values, the kernel."""
    target, trace = targets.get("sm_90"), Trace()
    module = Compilation(parse(PROGRAM), target, Options(triton="on"), trace).passes("fused")
    fusion = module.entry.root
    decision = next(d for d in trace.decisions if d.object == fusion.name)
    config = config_of(fusion)
    assert config is not None
    costs = f"{decision.cost_before:.1f} us by a library and a kernel before and behind it, {decision.cost_after:.1f} as one"
    kernel = emit_fusion(fusion, "scaled", target)
    return (
        f"A product of bytes and bf16 with a bias:\n\n```text\n{PROGRAM}```\n\n"
        f"`gemm-fusion` makes it one kernel: {decision.reason}; by its model {costs}. A program needs these tiles, by where "
        "it is in the result (`d0`, `d1`) and in the sum (`d2`):\n\n"
        f"{_tiles(fusion, config.tiles, config.block_k)}\n\n"
        "The kernel, as it goes to Triton. The rows of `x` and the columns of `w` are computed before the loop, the places "
        f"in the sum in it:\n\n```mlir\n{to_ttir(kernel.module)}```\n"
    )


def _tiles(fusion: Instruction, tiles: tuple[int, ...], step: int) -> str:
    tiling = Tiling(fusion.calls.root, frozenset(fusion.calls.instructions))
    rows = ["| value | from | elements | of dimensions |", "|---|---|---|---|"]
    for i, ways in tiling.values.items():
        for way in ways:
            sides = tiling.tile(i, way, (*tiles, step))
            offset, size = ", ".join(str(s.offset) for s in sides), " x ".join(str(s.size) for s in sides)
            rows.append(f"| `{i.name}`, {i.opcode} | ({offset}) | {size} | {re.sub(r'{.*', '', str(i.shape))} |")
    return "\n".join(rows)


def test_example(golden: Callable[[Path, str], None]) -> None:
    head, mark, _ = PAGE.read_text().partition("## An example\n")
    golden(PAGE, head + mark + "\n" + example())
