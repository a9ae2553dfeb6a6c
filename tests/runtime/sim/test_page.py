"""The examples of docs/use/simulator.md: planted bugs and what is reported of them, word for word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import S32
from heron.runtime.sim.findings import Facts
from tests.runtime.sim.support import Dims, finding, kernel_text
from tests.runtime.sim.test_checks import FOR_EVER, SHARED, SYNC, WARP_SYNC, at, shared

PAGE = Path(__file__).parents[3] / "docs" / "use" / "simulator.md"
FACTS = Facts("HLO fusion.7: add.3, exp.4, from jit(step)/exp", (("output of fusion.7", row_major(S32, 8, 8)),))

ONE, WARPS = (1, 1, 1), (64, 1, 1)

#: title -> kernel body, grid, block, checks
EXAMPLES: dict[str, tuple[str, Dims, Dims, str]] = {
    "A barrier is missing (races, shared memory)": (
        shared("%p", "%t")
        + "  store i32 %t, ptr addrspace(3) %p\n  %n = xor i32 %t, 32\n"
        + shared("%q", "%n")
        + "  %v = load i32, ptr addrspace(3) %q",
        ONE,
        WARPS,
        "races",
    ),
    "Two blocks write one element (races, global memory)": (
        at("%p", "%t") + "  store i32 %b, ptr %p",
        (2, 1, 1),
        WARPS,
        "races",
    ),
    "One thread too many (bounds)": (at("%p", "%t") + "  store i32 0, ptr %p", ONE, (65, 1, 1), "bounds"),
    "A vector that is not where it should be (bounds)": (
        at("%p", "%t") + "  %v = load <2 x i32>, ptr %p, align 8",
        ONE,
        (2, 1, 1),
        "bounds",
    ),
    "Shared memory nobody wrote (uninit)": (
        shared("%p", "%t") + "  %v = load i32, ptr addrspace(3) %p",
        ONE,
        WARPS,
        "uninit",
    ),
    "A thread that leaves before the barrier (always)": (
        "  %c = icmp eq i32 %t, 3\n  br i1 %c, label %end, label %go\ngo:\n" + SYNC + "  br label %end\nend:",
        ONE,
        WARPS,
        "all",
    ),
    "Half a warp at a barrier of the whole (always)": (
        "  %c = icmp ult i32 %t, 16\n  br i1 %c, label %go, label %end\ngo:\n" + WARP_SYNC + "  br label %end\nend:",
        ONE,
        (32, 1, 1),
        "all",
    ),
    "A shuffle that reads a lane outside its mask (divergence)": (
        "  %c = icmp ult i32 %t, 16\n  br i1 %c, label %go, label %end\ngo:\n"
        "  %s = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 65535, i32 %t, i32 20, i32 31)\n  br label %end\nend:",
        ONE,
        (32, 1, 1),
        "divergence",
    ),
    "A loop for ever (always)": (FOR_EVER.replace("MORE", ""), ONE, ONE, "all"),
}


def examples() -> str:
    """The page's last part."""
    parts = []
    for title, (body, grid, block, checks) in EXAMPLES.items():
        text = kernel_text(body, globals_=SHARED)
        error = finding(text, np.zeros(64, np.int32), grid=grid, block=block, checks=checks, facts=FACTS, steps=1000)
        parts.append(f"### {title}\n\n```llvm\n{body.rstrip()}\n```\n\n```text\n{error.render()}\n```\n")
    return "\n".join(parts)


def test_examples_are_what_is_reported(golden: Callable[[Path, str], None]) -> None:
    head, mark, rest = PAGE.read_text().partition("## Examples\n")
    intro = rest.partition("### ")[0]
    golden(PAGE, head + mark + intro.rstrip() + "\n\n" + examples())
