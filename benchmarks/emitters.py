"""``python -m benchmarks.emitters --write``: docs/reference/emitters.md: three programs on their way from HLO to PTX.

Everything on the page is what the compiler said when it was made, so it never tells of another compiler than this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

import heron
from benchmarks import ptx_text
from heron import files, targets
from heron.analysis.fusion.partition import partition
from heron.backends.compiler import Compilation
from heron.codegen.transforms import pipeline
from heron.options import Options
from heron.trace import Trace

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from heron.codegen.transforms.options import TransformOptions
    from heron.hlo.ir.instruction import Instruction

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "emitters.md"
TARGET = "sm_90"

GELU = """HloModule gelu

ENTRY main {
  x = bf16[6,512,4096] parameter(0)
  xx = bf16[6,512,4096] multiply(x, x)
  xxx = bf16[6,512,4096] multiply(xx, x)
  a = bf16[] constant(0.044715)
  as = bf16[6,512,4096] broadcast(a), dimensions={}
  cubic = bf16[6,512,4096] multiply(xxx, as)
  inner = bf16[6,512,4096] add(x, cubic)
  s = bf16[] constant(0.797884583)
  ss = bf16[6,512,4096] broadcast(s), dimensions={}
  scaled = bf16[6,512,4096] multiply(inner, ss)
  t = bf16[6,512,4096] tanh(scaled)
  one = bf16[] constant(1)
  ones = bf16[6,512,4096] broadcast(one), dimensions={}
  plus = bf16[6,512,4096] add(t, ones)
  half = bf16[] constant(0.5)
  halves = bf16[6,512,4096] broadcast(half), dimensions={}
  factor = bf16[6,512,4096] multiply(plus, halves)
  ROOT gelu = bf16[6,512,4096] multiply(x, factor)
}
"""
TRANSPOSE = """HloModule transposed

ENTRY main {
  x = f32[20,160,170] parameter(0)
  a = f32[20,160,170] abs(x)
  t = f32[170,160,20] transpose(a), dimensions={2,1,0}
  ROOT e = f32[170,160,20] exponential(t)
}
"""
SOFTMAX = """HloModule softmax

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b)
}

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  x = f32[8192,512] parameter(0)
  low = f32[] constant(-inf)
  top = f32[8192] reduce(x, low), dimensions={1}, to_apply=larger
  tops = f32[8192,512] broadcast(top), dimensions={0}
  below = f32[8192,512] subtract(x, tops)
  e = f32[8192,512] exponential(below)
  zero = f32[] constant(0)
  total = f32[8192] reduce(e, zero), dimensions={1}, to_apply=sum
  totals = f32[8192,512] broadcast(total), dimensions={0}
  ROOT p = f32[8192,512] divide(e, totals)
}
"""


@dataclass(frozen=True, slots=True)
class Example:
    """A program, and what is worth looking at on its way. ``steps``: whether to show it after each of them."""

    title: str
    text: str
    about: str
    steps: bool = True


EXAMPLES = (
    Example(
        "GELU, `bf16[6,512,4096]`",
        GELU,
        """\
Eight multiplications and additions and one tanh: nothing but elementwise work, so the **loop** emitter takes it. Each
of 128 threads computes neighbouring elements, and the map of `xla_gpu.loop` says which: thread and block number in,
index of the element out. bf16 arithmetic is done in f32 and rounded after each operation, as the evaluator does it.""",
    ),
    Example(
        "A transpose, `f32[20,160,170]` → `[170,160,20]`, with abs and exp",
        TRANSPOSE,
        """\
Read along rows of the input and written along rows of the output, so the **transpose** emitter stages the values in a
tile of shared memory: 32 columns, and a 33rd so that a column's elements are in different banks. Both functions are
computed before the tile: the simplifier has moved the exponential to the operand's side of the transpose.""",
    ),
    Example(
        "A softmax, `f32[8192,512]`",
        SOFTMAX,
        """\
Two reductions of a row, the second of which needs the first, and a loop over the row that needs both. As kernels of
their own they read the array three times; `normalization-fusion` makes one of them, for the **rows** emitter. A warp
does a row: each of its threads has 16 elements in an array of its own (`tensor.empty`), which LLVM keeps in registers.
After the first walk the array holds x, after the second the exponentials. The warp's shuffles combine the partial
results, and `xla_gpu.shuffle_first` gives the result to all of its threads.""",
        steps=False,
    ),
)


def page() -> str:
    """The whole page."""
    parts = [_HEAD.format(steps="\n".join(_steps()))]
    for example in EXAMPLES:
        parts.append(f"## {example.title}\n\n{example.about}\n\n" + "\n\n".join(_walk(example)))
    return "\n".join(parts) + "\n"


def _steps() -> Iterator[str]:
    yield "| step | what |"
    yield "|---|---|"
    for name, _ in pipeline.PIPELINES["gpu"]:
        summary = pipeline.summary(name).replace("|", "\\|")
        yield f"| `{name}` | {summary} |"


def _walk(example: Example) -> Iterator[str]:
    """The stages of a program with one kernel."""
    text = example.text
    compilation = Compilation(heron.parse(text), targets.get(TARGET), Options(), Trace())
    _, uses = compilation.lowered
    ((name, use),) = uses.items()
    kernel = use.kernel
    yield "After fusion there is one kernel:"
    yield _fence("", str(use.instruction.calls))
    yield "Cut into functions:"
    yield _fence("", _functions(use.instruction))
    facts = ", ".join(f"{key} {value}" for key, value in kernel.notes.items())
    grid, block = (" x ".join(map(str, sizes)) for sizes in (kernel.launch.grid, kernel.launch.block))
    yield f"Emitted by **{kernel.emitter}**, {grid} blocks of {block} threads ({facts}):"
    yield _fence("mlir", str(kernel.module))
    if example.steps:
        yield from _after_steps(kernel.module, compilation.machine.transform_options(uses))
    executable = heron.compile(heron.parse(text), TARGET)
    if example.steps:
        yield _details("LLVM IR", "llvm", executable.stage("llvm"))
    ptx = executable.stage("ptx")
    yield _details("PTX", "ptx", ptx[ptx.index(".visible .entry") :])
    code = ptx_text.kernels(ptx)[name]
    widths = ", ".join(f"{times} of {bits} bits" for bits, times in sorted(code.accesses.items(), reverse=True))
    yield f"{code.count} PTX instructions; accesses of global memory: {widths}."
    used = executable.cubin.resources[name]  # type: ignore[attr-defined]
    yield (
        f"The assembler's figures: {used.registers} registers a thread, {used.shared_bytes:,} bytes of shared memory,"
        f" {used.barriers} barriers, {used.spill_bytes} bytes of spills, {used.code_bytes:,} bytes of code.\n"
    )


def _after_steps(module: ModuleOp, options: TransformOptions) -> Iterator[str]:
    """The module after each step that changes it."""
    before = str(module)
    record: list[tuple[str, str]] = []
    pipeline.run(module, options, observe=lambda step, m: record.append((step, str(m))))
    idle = []
    for step, after in record:
        if after == before:
            idle.append(f"`{step}`")
            continue
        yield f"<details><summary>after <code>{step}</code></summary>\n\n{_fence('mlir', after)}\n\n</details>"
        before = after
    yield f"Steps that found nothing to do here: {', '.join(idle) or 'none'}."


def _functions(i: Instruction) -> str:
    root = i.calls.root
    return str(partition(root.operands if root.opcode == "tuple" else [root]))


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def _details(title: str, language: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{_fence(language, text)}\n\n</details>"


_HEAD = """# From a fusion to PTX

Three programs compiled for sm_90, stage by stage. This page is what the compiler printed: `python -m
benchmarks.emitters --write` makes it anew, and a test holds it true. The same for any program:

```sh
heron compile FILE --target sm_90 --to fused
heron compile FILE --target sm_90 --to mlir --print-after-all
heron compile FILE --target sm_90 --to llvm    # or ptx, sass
heron compile FILE --target sm_90              # registers, shared memory, spills
```

## The steps

In this order; `heron codegen list` gives them too.

{steps}

What some of them are worth: the 361 distinct kernels of the workloads for sm_90 without the step and with it, by
NVIDIA's assembler (2026-11-22; no GPU was there to time them).

| step | changes | how |
|---|---:|---|
| `narrow-index` | 269 | 3.9 % less machine code; registers more in 74 kernels, fewer in 77, 1.6 % more in all |
| `optimize-loops` by registers | 50 | reductions of few blocks wait up to six times less often for memory |
| `peel-loops` | 6 | no bounds check inside: LLVM writes rounds out, 1 to 12 registers more hold what is loaded |
| `simplify-arith` by ranges | 0 | LLVM decides the same; it reads 676 comparisons less, most of them in `threefry` |
| `vectorize-loads-stores` of s4, pred | 0 | LLVM joins those of the workloads; beside a branch 32 bits instead of 8 |

XLA:GPU has a few steps more. Four of them are there on request (`heron codegen opt`). The first three change none of
1,303 kernels of the emitters' tests. The fourth changes 10 of the 67 kernels of 12 programs with reductions and scans:
0.9 % more registers, no spills, 4.6 % more PTX (486 instructions for 311 in two of `nbody`), and in each the rounds
that are written out have as many loads under way without it:

| step of XLA:GPU | here |
|---|---|
| `erase-dead-functions` | for kernel text; the inliner moves a function into its last caller |
| `expand-float-ops` | for kernel text; emitters compute small floats in f32 themselves |
| `propagate-slice-indices` | for kernel text; LLVM inlines the functions that are left |
| loads moved a round ahead | `pipeline-loads`, on request; `optimize-loops` writes rounds out, with fewer waits |
| `lower-to-llvm` | LLVM text is written from the last module directly |
"""


@click.command()
@click.option("--write", is_flag=True, help="Write docs/reference/emitters.md.")
def main(write: bool) -> None:
    """Print the page, or write it."""
    if write:
        files.write_text(PAGE, page())
    else:
        click.echo(page())


if __name__ == "__main__":
    main()
