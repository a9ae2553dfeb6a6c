"""``python -m benchmarks.peer_gpu DUMP [NAME…]``: heron's GPU kernels beside those of XLA:GPU, with no GPU.

DUMP has a folder for each program with what XLA:GPU wrote while it compiled it for an H200: ``*thunk_sequence.txt``,
``optimized.hlo`` and a ``*.ptx`` file for each kernel (XLA_FLAGS: --xla_dump_to, --xla_dump_hlo_as_text). One assembler
makes machine code of both sides' PTX. Matrix products stand apart: XLA writes kernels for them, heron calls a library.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click

import heron
from benchmarks import programs, ptx_text, sections
from heron import files, targets
from heron.analysis import cost
from heron.backends.compiler import Compilation
from heron.backends.lower import NO_CODE
from heron.codegen.llvm.assemble import assemble
from heron.compiling import compile
from heron.errors import HeronError
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.runtime.thunks import ConditionalThunk, KernelThunk, LibraryThunk, Thunk, WhileThunk, walk
from heron.trace import Trace

TARGET, XLA_TARGET = "sm_90", "sm_90a"
_THUNK = re.compile(r"^\s*\d+: k(\w+)\s+\[[^]]*\]\s*(\w*)", re.M)
_PRODUCT = re.compile(r"%?([\w.-]+) = [^\n]*__triton_nested_gemm_fusion")
_CONTROL = ("While", "Conditional", "Sequential")
_FLOW = ("while", "conditional", "call")


@dataclass(slots=True)
class Side:
    """A program as one compiler makes it. Launches count each place once; distinct kernels have the other figures."""

    launches: int = 0
    products: int = 0
    others: int = 0
    kernels: int = 0
    instructions: int = 0
    registers: int = 0
    mean_registers: float = 0.0
    spill_bytes: int = 0
    widest: int = 0
    moved: int = 0

    def measure(self, texts: Iterable[str], sm: str, leave_out: Sequence[str] = ()) -> None:
        """Fill in what the kernels of PTX texts are like, but for those of the names left out."""
        registers: list[int] = []
        for text in texts:
            codes = {n: c for n, c in ptx_text.kernels(text).items() if n not in leave_out}
            if not codes:
                continue
            used = assemble(text, sm).resources
            self.kernels += len(codes)
            self.instructions += sum(c.count for c in codes.values())
            self.widest = max([self.widest, *(w for c in codes.values() for w in c.accesses)])
            self.spill_bytes += sum(used[n].spill_bytes for n in codes)
            registers += [used[n].registers for n in codes]
        self.registers = max(registers, default=0)
        self.mean_registers = sum(registers) / len(registers) if registers else 0.0


def ours(name: str) -> Side:
    """The program by heron."""
    module = heron.parse(programs.path(name, platform="cuda").read_text())
    compilation = Compilation(module, targets.get(TARGET), Options(), Trace())
    side = Side(moved=moved(compilation.scheduled, ()))
    for t in walk(compilation.lowered[0]):
        side.launches += isinstance(t, KernelThunk)
        side.products += is_product(t)
        side.others += not is_product(t) and not isinstance(t, (KernelThunk, WhileThunk, ConditionalThunk))
    side.measure([compile(module, TARGET).ptx], TARGET)  # type: ignore[attr-defined]
    return side


def is_product(t: Thunk) -> bool:
    """Whether a step is a library's matrix product."""
    return isinstance(t, LibraryThunk) and t.call.library == "cublaslt"


def theirs(folder: Path) -> Side:
    """The program by XLA. Raises CLI010 when the dump lacks a file."""
    sequences = sorted(folder.glob("*thunk_sequence.txt"))
    if not sequences or not (folder / "optimized.hlo").exists():
        raise HeronError("CLI010", f"'{folder}' is no dump of XLA:GPU", why="no thunk_sequence.txt or optimized.hlo")
    text = (folder / "optimized.hlo").read_text()
    products = [re.sub(r"\W", "_", n) for n in _PRODUCT.findall(text)]
    side = Side(moved=moved(heron.parse(text), products))
    for kind, kernel in _THUNK.findall(sequences[-1].read_text()):
        if kind in ("Kernel", "CustomKernel"):
            is_product = kernel in products or kernel.startswith("gemm_fusion")
            side.products += is_product
            side.launches += not is_product
        elif not kind.startswith(_CONTROL):
            is_product = kind.startswith(("Gemm", "Cublas"))
            side.products += is_product
            side.others += not is_product
    ptx = [path.read_text() for path in sorted(folder.glob("*.ptx")) if path.stat().st_size]
    names = {n for text in ptx for n in ptx_text.kernels(text)}
    side.measure(ptx, XLA_TARGET, [n for n in names if n in products or n.startswith("gemm_fusion")])
    return side


def moved(module: Module, products: Sequence[str]) -> int:
    """Bytes kernels read and write, every instruction of entry, loop bodies and branches once; products apart."""
    return sum(
        cost.bytes_read(i) + cost.bytes_written(i)
        for c in [module.entry, *_bodies(module)]
        for i in c.instructions
        if i.opcode not in (*NO_CODE, "while", "conditional", "call", "dot", "custom-call", "convolution")
        and re.sub(r"\W", "_", i.name) not in products
    )


def _bodies(module: Module) -> list[Computation]:
    """Computations that control flow runs."""
    callers = module.callers()
    return [c for c in module.computations if any(u.opcode in _FLOW for u in callers.get(c, ()))]


@dataclass(frozen=True, slots=True)
class Row:
    """A program by both."""

    name: str
    heron: Side
    xla: Side

    def ratio(self, figure: str) -> float | None:
        """heron's figure over XLA's; None where XLA's is 0."""
        peer = getattr(self.xla, figure)
        return getattr(self.heron, figure) / peer if peer else None


_COLUMNS = (
    ("launches", "launches", 9),
    ("products", "products", 9),
    ("other", "others", 8),
    ("kernels", "kernels", 8),
    ("PTX instr", "instructions", 12),
    ("max regs", "registers", 9),
    ("mean regs", "mean_registers", 10),
    ("spill B", "spill_bytes", 8),
    ("MB moved", "moved", 14),
)


def table(rows: Sequence[Row]) -> str:
    """One line a program, each figure as heron's / XLA's."""
    lines = [f"{'program':20}" + "".join(f"{title:>{max(width, len(title) + 1)}}" for title, _, width in _COLUMNS)]
    for r in rows:
        cells = ""
        for title, figure, width in _COLUMNS:
            text = "/".join(_short(figure, getattr(side, figure)) for side in (r.heron, r.xla))
            cells += f"{text:>{max(width, len(title) + 1)}}"
        lines.append(f"{r.name:20}{cells}")
    return "\n".join(lines)


def _short(figure: str, value: float) -> str:
    if figure == "moved":
        mb = value / 1e6
        return f"{mb:.0f}" if mb >= 100 else f"{mb:.2g}"
    return f"{value:.0f}"


def means(rows: Sequence[Row]) -> str:
    """Geometric means of the ratios, over the programs where both sides have the figure."""
    lines = []
    for title, figure, _ in _COLUMNS:
        known = [x for r in rows if (x := r.ratio(figure))]
        if known and figure not in ("products", "others", "spill_bytes"):
            mean = math.exp(sum(map(math.log, known)) / len(known))
            lines.append(f"{title}: geometric mean {mean:.3g} x XLA:GPU over {len(known)} programs")
    return "\n".join(lines)


def section(rows: Sequence[Row]) -> str:
    """What docs/reference/benchmarks.md says."""
    today = datetime.date.today()
    return f"""Programs as JAX lowers them for CUDA, at full scale, compiled for an H200 by both, {today},
by `python -m benchmarks.peer_gpu DUMP --write`; each pair is heron's / XLA:GPU's. No GPU was there: XLA's products are
not tuned, and times are not known. Matrix products (XLA's Triton kernels, heron's library calls) are counted under
"products" and left out of the other figures; "other" is copies and other libraries' calls. Launches are places in the
program, a loop's body counted once; the figures after them are over distinct kernels: all their PTX instructions, the
most and the mean registers, spills (one assembler for both sides). "MB moved" is what all kernels read and write by
the shapes of their operands and results, each loop's body once.

```
{table(rows)}
```

{means(rows)}
"""


@click.command()
@click.argument("dump", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--write", is_flag=True, help="Write the table to docs/reference/benchmarks.md.")
@click.option("--json", "output", metavar="OUT", help="Write all figures to a file.")
def main(dump: Path, names: tuple[str, ...], write: bool, output: str | None) -> None:
    """Compare heron's kernels with XLA:GPU's, of which DUMP has a folder for each program (default: all there)."""
    here = [n for n in programs.names() if (dump / n).is_dir()]
    rows = [Row(name, ours(name), theirs(dump / name)) for name in names or here]
    click.echo(table(rows) + "\n\n" + means(rows))
    if write:
        sections.put("GPU kernels beside XLA:GPU", section(rows))
    if output:
        files.write_text(output, json.dumps([asdict(r) for r in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
