"""``python -m benchmarks.coverage [--write | --checks]``: which real programs run where, and what the others lack.

Each small workload is compiled, run and compared with XLA's values, in a process of its own. ``--write`` puts the table
into ``docs/reference/workloads.md``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

import click

from benchmarks import programs

ROOT = Path(__file__).parent.parent
WORKLOADS = ROOT / "tests" / "workloads"
PAGE = ROOT / "docs" / "reference" / "workloads.md"
TARGETS = ("cpu", "sim:sm_90", "sim:sm_90 checked", "sm_90")
_LIMIT = 300  # seconds

_HEAD = """# Real programs

42 JAX programs, from one elementwise op to a 12-layer GPT-2 training step. This table is written by
`python -m benchmarks.coverage --write`: each program's small version is compiled, run, and its outputs compared with
what XLA:CPU gives. "ok" means every output agrees within the tolerance of its type (f32 1e-5 relative, or 1e-5 of the
largest magnitude; bf16 and f16 1e-2; f64 1e-10; integers exactly; two programs whose
values are partly rounding noise have their own in `tests/workloads/tolerances.toml`). The GPU's columns are of the
programs as JAX lowers them for CUDA; on `sm_90` "ok" means compiled to PTX, and "checked" that the simulated GPU looked
for races, accesses out of bounds, values nobody wrote and divergence, and found none
([simulator.md](../use/simulator.md)).
`python -m benchmarks.coverage --checks` runs that column alone.

| program | evaluator | """


def outcome(name: str, target: str) -> str:
    """``ok``, ``differs: …``, or the error that stopped it. ``target`` may be ``TARGET checked``."""
    target, _, checked = target.partition(" ")
    program = str(programs.path(name, small=True, platform="cuda" if target.endswith("sm_90") else "cpu"))
    if target == "sm_90":
        command = ["compile", "--target", target, program]
    else:
        verb = ["eval"] if target == "evaluator" else ["run", "--target", target]
        command = [*verb, program, "--expect", str(WORKLOADS / "goldens" / f"{name}.npz")]
        command += ["--check", "all"] if checked else []
        for key, value in tomllib.loads((WORKLOADS / "tolerances.toml").read_text()).get(name, {}).items():
            command += [f"--{key}", str(value)]
    command = [sys.executable, "-m", "heron", *command, "--json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return f"not done in {_LIMIT} s"
    try:
        document = json.loads(done.stdout)
    except ValueError:
        return f"crashed ({done.returncode})"
    if "error" in document:
        return f"{document['error']['code']}: {document['error']['what']}"
    if "expect" not in document:
        return "ok"
    wrong = [c for c in document["expect"]["outputs"] if not c["ok"]]
    if not wrong:
        return "ok"
    worst = max(wrong, key=lambda c: float(c["max_abs"]))
    return f"differs: {len(wrong)} outputs, output {worst['output']} by {float(worst['max_abs']):.2g}"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--write", is_flag=True, help="Write docs/reference/workloads.md.")
@click.option("--checks", is_flag=True, help="Only on the simulated GPU with all checks; exit code 1 if one is not ok.")
def main(names: tuple[str, ...], write: bool, checks: bool) -> None:
    """Run every small workload (or NAMES) by the evaluator and on each target."""
    if checks:
        raise SystemExit(_checked(names or programs.names()))
    columns = ("evaluator", *TARGETS)
    lines = [_HEAD + " | ".join(TARGETS) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in names or programs.names():
        cells = [outcome(name, c).replace("|", "\\|").splitlines()[0] for c in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        click.echo(lines[-1])
    if write:
        PAGE.write_text("\n".join(lines) + "\n")


def _checked(names: Iterable[str]) -> int:
    """A line a program, its seconds too."""
    wrong = 0
    for name in names:
        start = time.perf_counter()
        result = outcome(name, "sim:sm_90 checked")
        wrong += result != "ok"
        click.echo(f"{name:24} {time.perf_counter() - start:6.1f} s  {result}")
    return int(wrong > 0)


if __name__ == "__main__":
    main()
