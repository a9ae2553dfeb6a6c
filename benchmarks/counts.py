"""``python -m benchmarks.counts --xla-dumps DIR [NAME…]``: instructions left by the optimiser, heron beside XLA:GPU.

DIR has a folder for each program with the HLO that XLA:GPU printed while it compiled it for an H200, of every pass
(XLA_FLAGS: --xla_dump_to, --xla_dump_hlo_as_text, --xla_dump_hlo_pass_re=.*). Both sides start from the same program,
the one JAX lowers for CUDA, and are counted at the same place: after simplification, before anything is done about
collectives, layouts, libraries or fusions. What counts is every instruction the entry reaches, in whatever computation,
parameters, constants and tuples too.
"""

from __future__ import annotations

import datetime
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import click

import heron
from benchmarks import programs, sections
from heron import targets
from heron.backends.gpu import pipeline as gpu
from heron.errors import HeronError
from heron.hlo.computation import Computation
from heron.hlo.module import Module
from heron.passes.context import PassContext
from heron.passes.pipeline import Fixpoint, Pipeline

TARGET = "sm_90"
#: the pipeline in whose first dump stands what XLA's simplification left
_AFTER = "*.collective-optimizations.after_pipeline-start.*"


@dataclass(frozen=True, slots=True)
class Row:
    """One program: instructions as given, and by opcode after the optimisers."""

    name: str
    given: int
    ours: Counter[str]
    theirs: Counter[str]

    @property
    def ratio(self) -> float:
        return self.ours.total() / self.theirs.total()

    def differences(self, most: int = 6) -> str:
        """The opcodes of which one side has more, most first: ``slice +3, pad -1``."""
        more = {o: self.ours[o] - self.theirs[o] for o in self.ours.keys() | self.theirs.keys()}
        found = sorted((o for o in more if more[o]), key=lambda o: (-abs(more[o]), o))
        return ", ".join(f"{o} {more[o]:+d}" for o in found[:most]) + (" …" if len(found) > most else "")


def count(module: Module) -> Counter[str]:
    """Instructions by opcode in the computations the entry reaches, each computation once."""
    seen: set[Computation] = {module.entry}
    todo = [module.entry]
    found: Counter[str] = Counter()
    while todo:
        c = todo.pop()
        for i in c.instructions:
            found[i.opcode] += 1
            fresh = [called for called in i.called if called not in seen]
            seen.update(fresh)
            todo += fresh
    return found


def optimise() -> Pipeline:
    """The passes of the GPU backend up to the last round of simplification."""
    steps = (*gpu.partition().steps, *gpu.optimise().steps)
    last = max(n for n, s in enumerate(steps) if isinstance(s, Fixpoint))
    return Pipeline("optimise", steps[: last + 1])


def row(name: str, dump: Path) -> Row:
    """Both sides' counts. Raises CLI010 when the dump lacks the program."""
    found = sorted(dump.glob(_AFTER))
    if not found:
        raise HeronError("CLI010", f"'{dump}' has no HLO of XLA after simplification", why=f"no file {_AFTER}")
    module = heron.parse(programs.path(name, platform="cuda").read_text())
    given = count(module).total()
    optimise().run(module, PassContext(target=targets.get(TARGET)))
    return Row(name, given, count(module), count(heron.parse(found[-1].read_text())))


def table(rows: list[Row]) -> str:
    lines = [f"{'program':22}{'given':>6}{'heron':>7}{'xla':>7}{'ratio':>7}  heron has more (+) or fewer (-)"]
    for r in rows:
        lines.append(
            f"{r.name:22}{r.given:6}{r.ours.total():7}{r.theirs.total():7}{r.ratio:7.2f}  {r.differences()}".rstrip()
        )
    mean = math.exp(sum(math.log(r.ratio) for r in rows) / len(rows))
    lines.append(f"geometric mean {mean:.3f} x XLA:GPU over {len(rows)} programs")
    return "\n".join(lines)


@click.command()
@click.argument("names", nargs=-1)
@click.option("--xla-dumps", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Into docs/benchmarks.md.")
def main(names: tuple[str, ...], xla_dumps: Path, write: bool) -> None:
    """Count the instructions of all programs (or NAMES) after both optimisers."""
    rows = [row(name, xla_dumps / name) for name in names or programs.names()]
    text = table(rows)
    click.echo(text)
    if write:
        intro = f"{datetime.date.today()}"
        sections.put("Instructions after the optimiser", f"{intro}\n\n```\n{text}\n```")


if __name__ == "__main__":
    main()
