"""Damages StableHLO and takes it as far as it goes: ``python -m tests.frontends.damage --count 5000``.

Another process does it, one that may crash, take long or need too much memory. A text is written to the output folder
when it leads to anything but a result or a HeronError: another exception, a crash, a stage beyond its time, a module
that does not print as it reads. Programs may run for ever, so running beyond the time is none of these.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tests.frontends.damage.mutate import TESTS, damaged
from tests.frontends.damage.survive import survive

_MEMORY = 4 << 30


class Worker:
    """The other process, begun anew after it ended or was ended."""

    def __init__(self, limit: float, texts: Path) -> None:
        self.limit, self.texts = limit, texts
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, seed: int, compiled: bool) -> tuple[str, str]:
        """``right``, ``endless`` (while it ran) or ``wrong``, and what was said."""
        process = self._process
        if process is None or process.poll() is not None:
            process = self._process = self._begun()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"seed": seed, "compiled": compiled}).encode() + b"\n")
        process.stdin.flush()
        stage, end = "begin", time.monotonic() + self.limit
        while time.monotonic() < end:
            if not select.select([process.stdout], [], [], max(0.0, end - time.monotonic()))[0]:
                break
            line = process.stdout.readline()
            if not line:
                process.wait()
                return "wrong", f"the process ended with {process.returncode} at '{stage}'"
            answer = json.loads(line)
            if "stage" not in answer:
                return answer["kind"], answer["said"]
            stage, end = answer["stage"], time.monotonic() + self.limit
        self.end()
        return ("endless", "") if stage == "run" else ("wrong", f"'{stage}' takes more than {self.limit:g} s")

    def _begun(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", __spec__.name if __spec__ else "tests.frontends.damage", "--work"]
        command += ["--texts", str(self.texts)]
        pipe = subprocess.PIPE  # unbuffered: what is read ahead, select would not see
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0)

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def work(texts: Path) -> int:
    """What the other process does: a seed a line in, stages and an outcome out."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what programs print goes elsewhere
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            text = damaged(asked["seed"], texts)
            said = survive(text, compiled=asked["compiled"], stage=lambda s: print(json.dumps({"stage": s}), file=out))
            answer = {"kind": "right", "said": said}
        except Exception:
            answer = {"kind": "wrong", "said": traceback.format_exc()}
        print(json.dumps(answer), file=out)
    return 0


def main() -> int:
    p = argparse.ArgumentParser(prog="python -m tests.frontends.damage", description=(__doc__ or "").splitlines()[0])
    p.add_argument("--count", type=int, default=1000, help="texts to try")
    p.add_argument("--seed", type=int, default=0, help="the first text")
    p.add_argument("--limit", type=float, default=60, help="seconds a stage may take")
    p.add_argument("--no-compile", action="store_true", help="only read, verify, print and read back")
    p.add_argument("--texts", type=Path, default=TESTS, help="where the programs are (default: the project's tests)")
    p.add_argument("--out", type=Path, default=Path("fuzz"))
    p.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.work:
        return work(a.texts)
    worker, start = Worker(a.limit, a.texts), time.monotonic()
    kinds: Counter[str] = Counter()
    for n in range(a.count):
        kind, said = worker.ask(a.seed + n, not a.no_compile)
        kinds["wrong" if kind == "wrong" else said.split(" ")[0] or kind] += 1
        if kind == "wrong":
            a.out.mkdir(parents=True, exist_ok=True)
            path = a.out / f"damaged_{a.seed + n}.mlir"
            path.write_text(damaged(a.seed + n, a.texts), encoding="utf-8")
            print(f"{path}: {said.strip()}", flush=True)
        if n % 100 == 99 or n + 1 == a.count:
            told = ", ".join(f"{v} {k}" for k, v in sorted(kinds.items()))
            print(f"{n + 1} texts, {time.monotonic() - start:.0f} s: {told}", file=sys.stderr, flush=True)
    worker.end()
    return int(kinds["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
