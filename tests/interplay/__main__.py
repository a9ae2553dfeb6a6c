"""``python -m tests.interplay``: draws joint programs, runs them, reduces and keeps what is not right.

Every program runs in a child process with a time limit. Results are added to ``results.jsonl`` in the output folder as
they come; the same command goes on where it was stopped. Exit code: 0 all right, 1 faults found, 2 wrong usage,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heron.cli.series import series
from tests.children import Lost, results
from tests.interplay import report
from tests.interplay.library import families, library
from tests.interplay.program import alone, draw, read
from tests.interplay.reducing import keep
from tests.interplay.running import GUARDED, SHARES, TARGETS, XLA, Job, Outcome, drawn_targets, run


def main() -> int:
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    a = _arguments()
    if a.list:
        for f in library().values():
            print(f"{f.family:12} {f.name:28} {f.takes}")
        return 0
    names = _names(a)
    if a.program:
        return _one(a)
    a.out.mkdir(parents=True, exist_ok=True)
    path = a.out / "results.jsonl"
    key = f"{'alone' if a.alone else a.seed} {a.least}-{a.most} {a.family} {a.only} {a.targets}"
    key += (
        f" on {a.devices} devices" * bool(a.devices) + f" in groups of {a.group}" * (a.group > 1) + " large" * a.large
    )
    rows = [r for r in report.rows(path) if r["key"] == key]
    done = {r["number"] for r in rows}
    if a.alone:
        programs = dict(enumerate(alone(names, a.devices)))
    else:
        numbers = range(a.start, a.start + a.count)
        programs = {
            n: draw(a.seed, n, names, a.least, a.most, devices=a.devices, group=a.group, large=a.large) for n in numbers
        }
    kept = str((a.out / "parts").absolute())
    jobs = [Job(p, drawn_targets(a.targets, n), n, kept) for n, p in programs.items() if n not in done]
    begin = time.monotonic()
    with path.open("a") as file, series("programs", len(jobs)) as work:
        for k, (index, outcome) in enumerate(work.over(results(run, jobs, a.jobs, a.timeout))):
            if isinstance(outcome, Lost):
                outcome = _each(jobs[index], a.timeout)
            row = report.row(key, jobs[index], outcome)
            file.write(json.dumps(row) + "\n")
            file.flush()
            rows.append(row)
            report.progress(k + 1, len(jobs), rows, time.monotonic() - begin)
            if outcome.faults or "jax" in outcome.kinds:
                report.fault(row)
                if a.reduce and outcome.faults:
                    print(keep(jobs[index], outcome, a.out, a.timeout, a.limit), flush=True)
            if a.minutes and time.monotonic() - begin > 60 * a.minutes:
                break
    print(report.table(rows, a.targets))
    if a.json:
        a.json.write_text(json.dumps(report.summary(rows), indent=1) + "\n")
    return work.code(any(r["faults"] for r in rows))


def _arguments() -> Any:
    p = argparse.ArgumentParser(prog="python -m tests.interplay", description=__doc__.splitlines()[0])
    p.add_argument("--count", type=int, default=200, help="programs")
    p.add_argument("--start", type=int, default=0, help="number of the first one")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--least", type=int, default=2, help="fragments of a program, at least")
    p.add_argument("--most", type=int, default=6, help="fragments of a program, at most")
    p.add_argument(
        "--group",
        type=int,
        default=8,
        metavar="N",
        help="N programs in a row join the same few parts, which XLA compiles once",
    )
    p.add_argument("--large", action="store_true", help="sizes of a thousand and more; XLA and the simulator take long")
    p.add_argument("--family", default="", help=f"only of {','.join(families())}")
    p.add_argument("--only", default="", metavar="NAME,NAME", help="only these fragments")
    p.add_argument(
        "--targets",
        default="",
        help=f"of {','.join(TARGETS)},{GUARDED},{XLA}; NAME/4 for every 4th program; without it {SHARES}, and all for --program",
    )
    p.add_argument("--devices", type=int, default=0, help="spread the programs over as many at most, on cpu")
    p.add_argument("--alone", action="store_true", help="each fragment by itself")
    p.add_argument("--jobs", type=int, default=1, help="processes")
    p.add_argument("--timeout", type=float, default=120, help="CPU seconds of a program")
    p.add_argument("--minutes", type=float, default=0, help="stop after as many")
    p.add_argument("--out", type=Path, default=Path("interplay"), help="folder of results and reduced programs")
    p.add_argument("--limit", type=float, default=240, help="seconds for each half of a reduction")
    p.add_argument("--no-reduce", dest="reduce", action="store_false")
    p.add_argument("--program", help="one program, as reports print it")
    p.add_argument("--json", type=Path, help="write the summary to a file")
    p.add_argument("--list", action="store_true", help="print the fragments")
    a = p.parse_args()
    a.targets = a.targets or ("cpu" if a.devices else ",".join(TARGETS) if a.program or a.alone else SHARES)
    return a


def _names(a: Any) -> Sequence[str]:
    wanted = set(filter(None, a.family.split(",")))
    names = [f.name for f in library().values() if f.family in wanted]
    names += [n for n in a.only.split(",") if n]
    unknown = (wanted - set(families())) | (set(names) - set(library()))
    if unknown:
        print(f"unknown: {', '.join(sorted(unknown))}; --list prints the fragments", file=sys.stderr)
        raise SystemExit(2)
    return names


def _one(a: Any) -> int:
    job = Job(read(a.program), drawn_targets(a.targets, 0))
    outcome = next(iter(results(run, [job], 1, a.timeout)))[1]
    outcome = _each(job, a.timeout) if isinstance(outcome, Lost) else outcome
    report.fault(report.row("", job, outcome))
    if outcome.faults and a.reduce:
        a.out.mkdir(parents=True, exist_ok=True)
        print(keep(job, outcome, a.out, a.timeout, a.limit))
    return 1 if outcome.faults else 0


def _each(job: Job, seconds: float) -> Outcome:
    """A job that was lost, target by target, to know which one it was."""
    whole = Outcome()
    jobs = [Job(job.program, (t,), job.number, job.kept) for t in job.targets]
    for index, outcome in results(run, jobs, 1, seconds):
        target = job.targets[index]
        if isinstance(outcome, Lost):
            whole.kinds[target], whole.texts[target] = "lost", str(outcome)
        else:
            whole.kinds |= outcome.kinds
            whole.texts |= outcome.texts
            whole.seconds |= outcome.seconds
    return whole


if __name__ == "__main__":
    sys.exit(main())
