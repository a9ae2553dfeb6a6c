"""``python -m benchmarks.peer_cost DUMP [NAME…]``: heron's cost model beside XLA:GPU's own, with no GPU.

DUMP is as for `benchmarks.peer_gpu`, made with ``--xla_gpu_collect_cost_model_stats``: XLA then writes the estimated
time of every fusion and product into ``optimized.hlo``. It has none of other libraries' calls; such calls of heron's
are left out of its time, too. With ``--zoo`` the folders are programs of `benchmarks.zoo`, ``@`` for the space.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

import heron
from benchmarks import programs, sections
from benchmarks.cubins import lowered
from heron import targets
from heron.analysis.cost.program import Step, program_cost, trips_of
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.hlo.calls.backend_config import hints
from heron.hlo.calls.declared import declaration
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.targets import Target
from heron.trace import Trace

#: XLA's models, the one to believe first: its tiles, any fusion, products and collectives
MODELS = ("indexing-cost-model", "", "sol")
#: ratios further off than this need a reason
MOST = 2.0


@dataclass(frozen=True, slots=True)
class Estimated:
    """Launches of a run, and their microseconds; ``unknown``: launches nobody has a time of."""

    launches: float = 0.0
    microseconds: float = 0.0
    unknown: float = 0.0


def ours(module: Module, target: Target) -> Estimated:
    """A program by heron's model."""
    steps = program_cost(Compilation(module, target, Options(), Trace()).scheduled, target).steps
    known = [s for s in steps if _is_known(s)]
    total = sum(s.runs for s in steps)
    return Estimated(total, 1e6 * sum(s.seconds for s in known), total - sum(s.runs for s in known))


def _is_known(step: Step) -> bool:
    """Whether XLA has a time of the like: no call of a library but products."""
    i = step.instruction
    if i.opcode != "custom-call":
        return i.opcode not in ("fft", "cholesky", "triangular-solve")
    call = declaration(i.custom_call_target)
    return call is not None and call.name == "gemm"


def theirs(module: Module, launch: float) -> Estimated:
    """A program by XLA's model, of its optimised module. ``launch``: microseconds of one."""
    launches = microseconds = unknown = 0.0
    for i, runs in _launched(module.entry, 1.0):
        found = _microseconds(i)
        launches += runs
        unknown += runs * (found is None)
        microseconds += runs * (found + launch) if found is not None else 0.0
    return Estimated(launches, microseconds, unknown)


def _launched(c: Computation, runs: float) -> Iterator[tuple[Instruction, float]]:
    """What a computation launches, and how often."""
    for i in c.instructions:
        if i.opcode == "while":
            yield from _launched(i.body, runs * (trips_of(i) or 1.0))
        elif i.opcode == "conditional":
            branches = [list(_launched(b, runs)) for b in i.called]
            yield from max(branches, key=lambda found: sum(n * (_microseconds(j) or 0.0) for j, n in found))
        elif i.opcode in ("call", "async-start"):
            for called in i.called:
                yield from _launched(called, runs)
        elif i.opcode in ("fusion", "custom-call", "copy", "sort", "fft", "cholesky", "triangular-solve"):
            yield i, runs


def _microseconds(i: Instruction) -> float | None:
    """XLA's time of an instruction; None where it has none."""
    costs: Any = hints(i).get("reification_cost")
    if not isinstance(costs, list):
        return None
    by_model = {str(c.get("name", "")): float(c.get("exec_time_us", 0.0)) for c in costs if isinstance(c, dict)}
    return next((by_model[m] for m in MODELS if m in by_model), None)


def table(found: Sequence[tuple[str, Estimated, Estimated]]) -> Iterator[str]:
    """A line for each program, and the mean."""
    wide = max(22, *(len(name) for name, *_ in found))
    yield f"{'program':{wide}} {'launches':>13} {'without time':>13} {'heron us':>10} {'XLA us':>10}  ratio"
    ratios: list[float] = []
    for name, own, other in found:
        ratio = own.microseconds / other.microseconds if other.microseconds else math.nan
        ratios += [ratio] if ratio == ratio and ratio > 0 else []
        launches, unknown = f"{own.launches:g}/{other.launches:g}", f"{own.unknown:g}/{other.unknown:g}"
        times = f"{own.microseconds:10.1f} {other.microseconds:10.1f} {ratio:6.2f}"
        yield f"{name.replace('@', ' '):{wide}} {launches:>13} {unknown:>13} {times}"
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    near = sum(1 / MOST <= r <= MOST for r in ratios)
    fewer = sum(own.launches <= other.launches for _, own, other in found)
    yield f"geometric mean {mean:.2f}; {near} of {len(ratios)} within a factor of {MOST:g}"
    yield f"no more launches than XLA in {fewer} of {len(found)}"


def compare(folder: Path, target: Target) -> tuple[Estimated, Estimated]:
    """A program by both. Raises CLI010 when the dump lacks XLA's module."""
    text = folder / "optimized.hlo"
    if not text.exists():
        raise HeronError("CLI010", f"'{folder}' is no dump of XLA:GPU", why="no optimized.hlo")
    if "@" in folder.name:
        module, _ = lowered(folder.name.replace("@", " "))
    else:
        module = heron.parse(programs.path(folder.name, platform="cuda").read_text())
    return ours(module, target), theirs(heron.parse(text.read_text(), elided_as_zero=True), 1e6 * target.launch_seconds)


@click.command(help=__doc__)
@click.argument("dump", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--write", is_flag=True, help="Write the section of docs/reference/benchmarks.md.")
@click.option("--zoo", is_flag=True, help="Programs of the zoo.")
def main(dump: Path, names: tuple[str, ...], write: bool, zoo: bool) -> None:
    target = targets.get("sm_90")
    found: list[tuple[str, Estimated, Estimated]] = []
    every = sorted(p.name for p in dump.iterdir() if "@" in p.name) if zoo else programs.names()
    for name in names or every:
        if names or (dump / name / "optimized.hlo").exists():
            try:
                found.append((name, *compare(dump / name, target)))
            except HeronError as error:
                click.echo(f"{name}: {error}", err=True)
                continue
            click.echo(list(table(found[-1:]))[1])
    lines = "\n".join(table(found))
    if write and zoo:
        sections.put("GPU times of the zoo beside XLA:GPU's model", _zoo_section(lines))
    elif write:
        sections.put("GPU times beside XLA:GPU's model", _section(lines))
    click.echo(lines)


def _zoo_section(lines: str) -> str:
    return f"""As the section before, for the programs of the zoo at their largest sizes, {datetime.date.today()}, by
`python -m benchmarks.peer_cost DUMP --zoo --write`.

```
{lines}
```
"""


def _section(lines: str) -> str:
    today = datetime.date.today()
    return f"""Estimated microseconds of a run on an H200 (sm_90) by heron's cost model and XLA:GPU's own, {today}, by
`python -m benchmarks.peer_cost DUMP --write`; no GPU was there. Launches are those of a run, loops counted as often as
they go round; each costs 1 µs on both sides. Calls of libraries that XLA has no time of (convolutions, transforms,
factorisations, sorts by CUB) are "without time", and so are heron's. XLA's products are calls of cuBLASLt here
(``xla_gpu_enable_triton_gemm=false``): its own kernels for them are not tuned where there is no GPU.

```
{lines}
```

Where that is more than a factor of 2:

- **`gelu_bf16`, `gelu_f32`, `math_zoo`, `uniform`, `threefry`, `transpose_chain`**: XLA's model has arithmetic bound
  these kernels: four to eight times as long as their bytes (`gelu_f32`: 125 µs of arithmetic, 28 of memory). heron's
  has memory bound them, as elementwise kernels of published figures are ([published.md](published.md)).
- **`cumsum`, `cumsum1`, `reductions`**: XLA cuts scans into passes over windows and some reductions into more kernels.
- **`gather_scatter`, `int8_quant_matmul`**: XLA's model has 67 µs of memory for the scatter, and 100 µs for the
  product of integers, far above what their bytes and operations take at the data sheet's rates.
- **`adam_200`, `nbody`, `resnet_block_grad`, `kv_decode`**: XLA launches two to twenty times as many kernels, and
  writes what lies between.
- **`matmul_f32`, `flax_cnn_grad`**: XLA multiplies f32 in tf32, heron in f32 unless the program allows it; that is
  most of `gpt2_12l_train_step`, too.
"""


if __name__ == "__main__":
    main()
