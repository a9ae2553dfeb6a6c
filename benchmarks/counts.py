"""``python -m benchmarks.counts --xla-dumps DIR [NAME…]``: instructions left by the optimiser, heron beside XLA:GPU.

DIR has a folder for each program with the HLO that XLA:GPU printed while it compiled it for an H200, of every pass
(XLA_FLAGS: --xla_dump_to, --xla_dump_hlo_as_text, --xla_dump_hlo_pass_re=.*). Both sides start from the same program,
the one JAX lowers for CUDA, and are counted at the same place: after simplification, before anything is done about
collectives, layouts, libraries or fusions. What counts is every instruction the entry reaches, in whatever computation,
parameters, constants and tuples too.
"""

from __future__ import annotations

import datetime
import itertools
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
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.passes.framework.context import PassContext
from heron.passes.framework.pipeline import Pipeline

TARGET = "sm_90"
#: passes XLA has only later, or has not
_LATER = ("scatter-determinism-expander", "tree-reduction-rewriter")
#: the pipeline in whose first dump stands what XLA's simplification left
_AFTER = "*.collective-optimizations.after_pipeline-start.*"


#: why programs differ by more than `_CLOSE`
_REASONS = {
    "concat_pad_slice": "slices with strides are joined too, XLA joins those without",
    "cond_switch": "XLA orders floats by their bits and wraps what branches give in tuples",
    "cumsum": "XLA cuts running sums and maxima into windows of 16, heron has kernels for whole scans",
    "cumsum1": "as cumsum",
    "embedding_grad": "an index taken modulo a power of two is one `and`; XLA keeps the sign and takes it back",
    "heat_while": "the loop's condition stands in its body, where it costs no kernel of its own",
    "gather_scatter": "as embedding_grad, and an index that cannot be negative is not wrapped round",
    "resnet_block_grad": "XLA makes select-and-scatter a reduce-window of positions and a scatter, heron a kernel",
    "sort_topk": "XLA orders floats by their bits, and leaves top-k to a library",
}
_CLOSE = 0.05


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
    """The passes of the GPU backend up to where XLA's simplification ends."""
    steps = (*gpu.partition().steps, *gpu.optimise().steps)
    return Pipeline("optimise", itertools.takewhile(lambda p: p.name not in _LATER, steps))


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


def reasons(rows: list[Row]) -> str:
    """A line for each program that differs by more than 5 %."""
    return "\n".join(
        f"- {r.name} ({r.ratio:.2f}): {_REASONS.get(r.name, 'not explained')}"
        for r in rows
        if abs(r.ratio - 1) > _CLOSE
    )


_INTRO = """Instructions left when simplification ends, before layouts, libraries and fusions, {today}, by
`python -m benchmarks.counts --write`: heron's GPU pipeline and XLA:GPU (jaxlib 0.10.2, for an H200) on the programs at
full scale as JAX lowers them for CUDA. Every instruction of every computation the entry reaches counts. The goal is
within 5 % of XLA, or a reason."""


@click.command()
@click.argument("names", nargs=-1)
@click.option("--xla-dumps", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--write", is_flag=True, help="Into docs/reference/benchmarks.md.")
def main(names: tuple[str, ...], xla_dumps: Path, write: bool) -> None:
    """Count the instructions of all programs (or NAMES) after both optimisers."""
    rows = [row(name, xla_dumps / name) for name in names or programs.names()]
    text, why = table(rows), reasons(rows)
    click.echo(f"{text}\n\n{why}")
    if write:
        intro = _INTRO.format(today=datetime.date.today())
        body = f"{intro}\n\n```\n{text}\n```\n\nWhere that is more than 5 % apart:\n\n{why}"
        sections.put("Instructions after the optimiser", body)


if __name__ == "__main__":
    main()
