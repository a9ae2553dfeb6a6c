"""``python -m benchmarks.kernels [NAME…]``: what making each kernel takes, step by step, and what it then uses.

Each kernel is compiled in a module of its own, from its fusion to PTX; with --ptxas an assembler makes machine code of
it too. The goal is a median under 25 ms up to PTX. Times are the processor's: other processes do not count.
"""

from __future__ import annotations

import datetime
import json
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field

import click

import heron
from benchmarks import programs, ptx_text, sections
from heron import files, targets
from heron.backends.compiler import Compilation
from heron.backends.gpu import blocks
from heron.backends.lower import KernelUse
from heron.codegen.llvm.assemble import assemble
from heron.codegen.llvm.cubin import Resources
from heron.codegen.llvm.nvptx import compile_ptx
from heron.codegen.llvm.optimize import Clock
from heron.codegen.llvm.translate import to_llvm
from heron.codegen.transforms import pipeline
from heron.codegen.transforms.options import TransformOptions
from heron.collector import collector_paused
from heron.errors import HeronError
from heron.options import Options
from heron.targets import Target
from heron.trace import Trace

GOAL_MS = 25.0
LAST = "assembly"


@dataclass(slots=True)
class Row:
    """One kernel: seconds of each step, its PTX in figures, what the assembler says; ``error`` when one refused."""

    program: str
    kernel: str
    emitter: str
    launches: int
    steps: dict[str, float] = field(default_factory=dict)
    instructions: int = 0
    widest_access: int = 0
    resources: Resources | None = None
    error: str = ""

    @property
    def to_ptx(self) -> float:
        """Seconds up to PTX."""
        return sum(s for name, s in self.steps.items() if name != LAST)


def measure(name: str, target: Target, small: bool = False, assembled: bool = True) -> Iterator[Row]:
    """The kernels of a program, one after the other, but block kernels, which Triton compiles."""
    module = heron.parse(programs.path(name, small, "cuda").read_text())
    compilation = Compilation(module, target, Options(), Trace())
    with collector_paused():  # as in `heron.compile`
        _, uses = compilation.lowered
        abis = compilation.machine.abis(uses)  # type: ignore[attr-defined]
        for kernel, use in blocks.without(uses).items():
            row = Row(name, kernel, use.kernel.emitter, len(use.sources))
            try:
                options = compilation.machine.transform_options({kernel: use})
                _compile(row, use, options, abis[kernel], target, assembled)
            except HeronError as error:
                row.error = str(error)
            yield row


def _compile(row: Row, use: KernelUse, options: TransformOptions, abi: object, target: Target, assembled: bool) -> None:
    row.steps["emit"] = use.emit_seconds
    clock = Clock(time.process_time)
    pipeline.run(
        use.kernel.module,
        options,
        observe=lambda step, _: row.steps.update({step: row.steps.get(step, 0.0) + clock.lap()}),
    )
    text = to_llvm(use.kernel.module, kernels={row.kernel: abi})  # type: ignore[dict-item]
    row.steps["LLVM text"] = clock.lap()
    ptx = compile_ptx(text, target.llvm_cpu, now=time.process_time)
    spent = clock.lap()
    row.steps["LLVM parse and link"], row.steps["LLVM optimise"] = ptx.timing.parse_s, ptx.timing.opt_s
    row.steps["PTX"] = spent - ptx.timing.parse_s - ptx.timing.opt_s  # with the checks around it
    code = ptx_text.kernels(ptx.text)[row.kernel]
    row.instructions, row.widest_access = code.count, max(code.accesses, default=0)
    if assembled:
        clock.lap()
        row.resources = assemble(ptx.text, target.llvm_cpu).resources[row.kernel]
        row.steps[LAST] = clock.lap()


def steps_table(rows: Sequence[Row]) -> str:
    """Milliseconds of each step over all kernels."""
    made = [r for r in rows if not r.error]
    names = list(dict.fromkeys(name for r in made for name in r.steps))
    whole = sum(r.to_ptx for r in made)
    lines = [f"{'step':29} {'median ms':>10} {'mean ms':>9} {'worst ms':>9} {'share':>6}"]
    for name in names:
        lines.append(_step(name, [r.steps[name] for r in made if name in r.steps], whole if name != LAST else 0.0))
    lines.append(_step("all up to PTX", [r.to_ptx for r in made], whole))
    return "\n".join(lines)


def _step(name: str, seconds: list[float], whole: float) -> str:
    ms = [1e3 * s for s in seconds]
    share = f"{sum(seconds) / whole:6.0%}" if whole else f"{'':6}"
    return f"{name:29} {statistics.median(ms):10.2f} {statistics.mean(ms):9.2f} {max(ms):9.1f} {share}".rstrip()


def programs_table(rows: Sequence[Row]) -> str:
    """One line a program: its kernels and what they use."""
    lines = [f"{'program':22} kernels  refused  PTX instr  registers  spill B  shared B  ms to PTX"]
    for name in dict.fromkeys(r.program for r in rows):
        mine = [r for r in rows if r.program == name]
        used = [r.resources for r in mine if r.resources is not None]
        lines.append(
            f"{name:22} {len(mine):7} {sum(bool(r.error) for r in mine):8} {sum(r.instructions for r in mine):10}"
            f" {max((u.registers for u in used), default=0) or '-':>10}"
            f" {sum(u.spill_bytes for u in used) if used else '-':>8}"
            f" {max((u.shared_bytes for u in used), default=0) if used else '-':>9}"
            f" {1e3 * sum(r.to_ptx for r in mine):10.1f}"
        )
    return "\n".join(lines)


def section(rows: Sequence[Row], target: str) -> str:
    """What docs/reference/benchmarks.md says."""
    made = [r for r in rows if not r.error]
    median = statistics.median(1e3 * r.to_ptx for r in made)
    return f"""{len(rows)} distinct kernels of {len({r.program for r in rows})} programs at full scale, for {target},
{datetime.date.today()}, by `python -m benchmarks.kernels --ptxas --write`. Each is compiled alone, in a module of its
own; a program's kernels go through together, which is faster. The goal is a median under {GOAL_MS:g} ms up to PTX:
it is {median:.1f} ms of processor time. Registers are the most any kernel of the program uses, by NVIDIA's assembler.

```
{steps_table(rows)}
```

```
{programs_table(rows)}
```
"""


def report(rows: Sequence[Row]) -> Iterable[str]:
    """What is printed: tables, then what was refused."""
    yield programs_table(rows)
    if any(not r.error for r in rows):
        yield steps_table(rows)
    for r in rows:
        if r.error:
            yield f"{r.program}: {r.kernel}: {r.error}"
    spilling = [r for r in rows if r.resources is not None and r.resources.spill_bytes]
    for r in spilling:
        yield f"{r.program}: {r.kernel} spills {r.resources.spill_bytes} bytes"  # type: ignore[union-attr]


@click.command()
@click.argument("names", nargs=-1)
@click.option("--small", is_flag=True, help="The scaled-down programs.")
@click.option("--target", "names_of_targets", multiple=True, help="GPUs to compile for (default: sm_90).")
@click.option("--every-target", is_flag=True, help="All GPUs there are data for.")
@click.option("--ptxas", is_flag=True, help="Make machine code too, by NVIDIA's assembler; tell what is refused.")
@click.option("--write", is_flag=True, help="Write the tables to docs/reference/benchmarks.md.")
@click.option("--json", "output", metavar="OUT", help="Write all figures to a file.")
def main(
    names: tuple[str, ...],
    small: bool,
    names_of_targets: tuple[str, ...],
    every_target: bool,
    ptxas: bool,
    write: bool,
    output: str | None,
) -> None:
    """Compile every kernel of NAMES (default: all programs) and tell what it took. Exit code 1: some were refused."""
    from heron.codegen.llvm.assemble import knows

    gpus = [t for t in targets.all_targets() if t.kind == "gpu" and not t.sim and t.name != "cuda"]
    chosen = gpus if every_target else [targets.get(n) for n in names_of_targets or ("sm_90",)]
    for _ in measure("softmax", chosen[0], small=True, assembled=ptxas and knows(chosen[0].llvm_cpu)):
        pass  # the first compile of a process loads libraries
    figures, failed = {}, False
    for target in chosen:
        assembled = ptxas and knows(target.llvm_cpu)
        if ptxas and not assembled:
            click.echo(f"{target.name}: the installed assembler does not know it; up to PTX only")
        rows = []
        for name in names or programs.names():
            rows += measure(name, target, small, assembled)
        click.echo(f"{target.name}\n" + "\n\n".join(report(rows)) + "\n")
        failed |= any(r.error for r in rows)
        figures[target.name] = [asdict(r) for r in rows]
        if write and target is chosen[0]:
            sections.put("GPU kernels", section(rows, target.name))
    if output:
        files.write_text(output, json.dumps(figures, indent=1) + "\n")
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
