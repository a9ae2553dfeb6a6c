"""``python -m benchmarks.language [NAME]``: what is done with a whole program as text and as data, beside jaxlib.

The goal for the 7,401 instructions of gpt2_12l_train_step is under 0.5 s for each. jaxlib offers parsing, printing and
protocol buffers from Python; the others have no peer there.
"""

from __future__ import annotations

import datetime
import gc
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import click

from benchmarks import programs, sections
from heron import files

GOAL = 0.5


@dataclass(frozen=True, slots=True)
class Row:
    """Seconds of one step; ``xla`` None where jaxlib has no such thing."""

    step: str
    heron: float
    xla: float | None

    @property
    def ratio(self) -> float | None:
        """heron's time over XLA's."""
        return None if self.xla is None else self.heron / self.xla


def _ours(text: str) -> dict[str, Callable[[], Any]]:
    from heron.hlo.ir.fingerprint import digest
    from heron.hlo.proto import from_proto, to_proto
    from heron.hlo.text import parse, print_module
    from heron.hlo.tools.compare import equal
    from heron.hlo.verifier import verify

    module = parse(text)
    other, data = module.clone(), to_proto(module)
    return {
        "parse": lambda: parse(text),
        "print": lambda: print_module(module),
        "verify": lambda: verify(module),
        "clone": module.clone,
        "hash": lambda: digest(module.entry),
        "compare": lambda: equal(module, other, names=True),
        "proto out": lambda: to_proto(module),
        "proto in": lambda: from_proto(data),
    }


def _theirs(text: str) -> dict[str, Callable[[], Any]]:
    try:
        from jaxlib import _hlo as hlo  # type: ignore[import-not-found]
    except ImportError:
        return {}
    module = hlo.hlo_module_from_text(text)
    data = module.as_serialized_hlo_module_proto()
    return {
        "parse": lambda: hlo.hlo_module_from_text(text),
        "print": module.to_string,
        "proto out": module.as_serialized_hlo_module_proto,
        "proto in": lambda: hlo.HloModule.from_serialized_hlo_module_proto(data),
    }


def measure(name: str, repeats: int) -> list[Row]:
    """The steps in turn, heron's and jaxlib's; of several rounds the fastest, which no other process makes faster."""
    text = programs.path(name).read_text()
    ours, theirs = _ours(text), _theirs(text)
    best: dict[tuple[str, bool], float] = {}
    for _ in range(repeats):
        for step in ours:
            for peer, side in ((False, ours), (True, theirs)):
                if step in side:
                    best[step, peer] = min(best.get((step, peer), float("inf")), _seconds(side[step]))
    return [Row(step, best[step, False], best.get((step, True))) for step in ours]


def _seconds(run: Callable[[], Any]) -> float:
    gc.collect()
    start = time.perf_counter()
    result = run()
    spent = time.perf_counter() - start
    del result
    return spent


def table(rows: list[Row]) -> str:
    """Rows as text."""
    lines = [f"{'step':10} {'heron s':>8} {'jaxlib s':>9} {'ratio':>6}"]
    for r in rows:
        peer = "-" if r.xla is None else f"{r.xla:.3f}"
        ratio = "-" if r.ratio is None else f"{r.ratio:.2f}"
        lines.append(f"{r.step:10} {r.heron:8.3f} {peer:>9} {ratio:>6}{'' if r.heron < GOAL else '  over the goal'}")
    return "\n".join(lines)


def section(name: str, rows: list[Row], repeats: int) -> str:
    """What docs/reference/benchmarks.md says."""
    from heron.hlo.text import parse

    count = parse(programs.path(name).read_text()).instruction_count()
    today = datetime.date.today()
    return f"""{name}, {count:,} instructions, {today}, by `python -m benchmarks.language --write`:
the fastest of {repeats} rounds, both sides in turn in one process. The goal is under {GOAL} s for each. jaxlib is C++;
its Python bindings have no verify, clone, hash or comparison.

```
{table(rows)}
```
"""


@click.command()
@click.argument("name", default="gpt2_12l_train_step")
@click.option("--repeats", type=click.IntRange(min=1), default=7, show_default=True, help="Rounds.")
@click.option("--write", is_flag=True, help="Write the table to docs/reference/benchmarks.md.")
@click.option("--json", "output", metavar="OUT", help="Write all figures to a file.")
def main(name: str, repeats: int, write: bool, output: str | None) -> None:
    """Measure parsing, printing, verifying, copying, hashing and protocol buffers on NAME."""
    rows = measure(name, repeats)
    click.echo(table(rows))
    if write:
        sections.put("The language", section(name, rows, repeats))
    if output:
        figures = [{**asdict(r), "ratio": r.ratio} for r in rows]
        files.write_text(output, json.dumps({"program": name, "goal": GOAL, "steps": figures}, indent=1) + "\n")


if __name__ == "__main__":
    main()
