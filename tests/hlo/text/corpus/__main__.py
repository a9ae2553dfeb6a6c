"""Reads every HLO text of a folder: ``python -m tests.hlo.text.corpus FOLDER``.

A file ``.hlo`` or ``.txt`` is one module. Each is parsed, verified, printed (as XLA prints it, where jaxlib is there
to ask), and its own text read back; ``--run`` also runs what verifies and compares with XLA's CPU, or with the
evaluator where XLA does not run it. Texts that XLA refuses are counted apart. Work is done in child processes: a crash
or a hang is a finding like others.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from tests.child import Child

FIXED = ("parse", "verify", "print", "again")
_NAMES = re.compile(r"'[^']*'|\d+")
_BAD = ("exception", "wrong", "crash", "timeout")


def main(argv: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m tests.hlo.text.corpus", description=(__doc__ or "").partition("\n")[0])
    p.add_argument("folder", type=Path)
    p.add_argument("--run", action="append", default=[], metavar="TARGET", help="evaluator, cpu, sim:sm_90, ...")
    p.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth text")
    p.add_argument("--limit", type=float, default=20, help="seconds a text may take")
    p.add_argument("--examples", type=int, default=1, help="texts named for each reason")
    p.add_argument("--json", type=Path, help="write all findings here, one line a text")
    a = p.parse_args(argv)
    files = sorted(f for f in a.folder.rglob("*") if f.suffix in (".hlo", ".txt"))[:: a.every]
    found = Findings((*FIXED, *a.run), a.examples)
    start = time.monotonic()
    with Both(a.limit, a.run) as both:
        for n, file in enumerate(files, 1):
            answer = both.read(file)
            found.add(str(file.relative_to(a.folder)), answer)
            if a.json:
                with a.json.open("a") as out:
                    print(json.dumps({"file": str(file), **answer}), file=out)
            if n % 200 == 0:
                print(f"{n} of {len(files)} texts, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    print(found.table())
    return 1 if found.bad else 0


class Both:
    """heron, and XLA where jaxlib is installed, each in a child process."""

    def __init__(self, limit: float, run: list[str]) -> None:
        self._run = run
        self._heron = Child("tests.hlo.text.corpus.reading", limit)
        found = importlib.util.find_spec("jaxlib") is not None
        self._xla = Child("tests.hlo.text.corpus.by_xla", limit) if found else None
        self._values = tempfile.TemporaryDirectory()

    def __enter__(self) -> Both:
        return self

    def __exit__(self, *_: object) -> None:
        self._heron.stop()
        if self._xla is not None:
            self._xla.stop()
        self._values.cleanup()

    def read(self, file: Path) -> dict[str, Any]:
        """The findings about a text by stage; ``xla`` is XLA's own."""
        job: dict[str, Any] = {"file": str(file.absolute()), "run": self._run}
        answer: dict[str, Any] = {}
        if self._xla is not None:
            values = f"{self._values.name}/values.npz" if self._run else ""
            theirs = self._xla.ask({**job, "values": values})
            answer["xla"] = theirs["status"]
            job["xla"] = theirs.get("text")
            if theirs.get("ran"):
                job["values"] = values
        ours = self._heron.ask(job)
        return {**answer, **({"parse": ours} if "status" in ours else ours)}


class Findings:
    """Counts, and the reasons with examples."""

    def __init__(self, stages: tuple[str, ...], examples: int) -> None:
        self._stages, self._examples = stages, examples
        self._counts: dict[str, Counter[str]] = defaultdict(Counter)
        self._reasons: dict[tuple[str, ...], list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        self._refused: Counter[str] = Counter()
        self.bad = 0

    def add(self, name: str, answer: dict[str, Any]) -> None:
        """The findings about one text."""
        if answer.get("xla", "ok") == "refused":
            self._refused[answer["parse"]["status"]] += 1
            answer = {s: f for s, f in answer.items() if s in self._stages and f["status"] in _BAD}
        for stage in self._stages:
            finding = answer.get(stage)
            if finding is None:
                continue
            status = finding["status"]
            self._counts[stage][status] += 1
            self.bad += status in _BAD
            if status not in ("ok", "skipped"):
                what = finding.get("what") or finding.get("error") or ""
                key = (stage, status, finding.get("code", ""), _NAMES.sub("_", what)[:100])
                self._reasons[key].append((name, finding))

    def table(self) -> str:
        """Counts by stage, then reasons, the most frequent first."""
        columns = ("ok", "refused", "differs", "skipped", *_BAD)
        lines = ["stage      " + "".join(f"{c:>10}" for c in columns)]
        for stage in self._stages:
            lines.append(f"{stage:<11}" + "".join(f"{self._counts[stage][c]:>10}" for c in columns))
        if self._refused:
            shown = ", ".join(f"{n} {status}" for status, n in self._refused.items())
            lines.append(f"XLA refuses {sum(self._refused.values())} more texts; heron's parser: {shown}")
        for (stage, status, code, _), texts in sorted(self._reasons.items(), key=lambda r: -len(r[1])):
            finding = texts[0][1]
            what = finding.get("what") or finding.get("error") or ""
            lines.append(f"\n{len(texts)} × {stage} {status} {code}: {what}")
            for name, one in texts[: self._examples]:
                lines += [f"    {part}" for part in (name, one.get("where"), one.get("why")) if part]
        return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
