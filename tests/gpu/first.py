"""The first contact with a GPU: ``python -m tests.gpu.first``, a ladder from the driver to whole programs, in 3 minutes.

Each rung is a process of its own with a short limit: one that hangs or takes its device down costs no other rung
anything. A JSON line a rung goes to ``--out`` and, cut short, to standard output; at the end stands what to look at next.
The exit status is 1 if a rung failed. ``--rehearse`` climbs on a driver that records, ``--prepared FOLDER`` has programs
that `benchmarks.gpu.prepare` compiled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

#: real programs that need different parts of the path, small ones first
SMALL = (
    "row_sum softmax transpose_chain sort_topk heat_while cond_switch lstm_scan matmul_f32 fft conv_variants "
    "flax_cnn_grad cholesky_solve linalg_lapack rmsnorm_swiglu matmul_bf16_gelu attention_bf16_grad adam_200"
).split()
#: a rehearsal compiles its programs: fewer of them
REHEARSED = ("row_sum", "cond_switch")
LIMIT, AT_ONCE = 45.0, 6


@dataclass(frozen=True, slots=True)
class Rung:
    """One step: its name, the module that is run with its arguments, and what to look at if it fails."""

    name: str
    module: str
    arguments: tuple[str, ...]
    next: str


def rungs(rehearse: bool, prepared: str) -> list[list[Rung]]:
    """The ladder: rungs of one list may be climbed beside each other, each list after the one before."""
    from tests.gpu.reach import PROGRAMS

    flags = ("--rehearse",) if rehearse else ()
    held = ("--prepared", prepared) if prepared else ()
    basics = [Rung(n, "tests.gpu.basics", (n, *flags, *held), text) for n, text in _BASICS.items()]
    names = REHEARSED if rehearse else SMALL
    streams = [Rung(f"streams {n}", "tests.gpu.one", (n, "--streams", *flags, *held), _STREAMS) for n in names]
    graphs = [Rung(f"graphs {n}", "tests.gpu.one", (n, *flags, *held), _GRAPHS) for n in names]
    reach = [Rung(f"reach {n}", "tests.gpu.reach", (n, *flags), _REACH) for n in PROGRAMS]
    return [*([b] for b in basics), streams, graphs, reach]


_BASICS = {
    "driver": "the driver itself: nvidia-smi; functions that it lacks are in the line",
    "libraries": "a library that does not load: LD_LIBRARY_PATH, CUDA_HOME, NVIDIA's wheels",
    "copies": "heron/runtime/cuda/transfer.py and allocator.py: nothing else is right before copies are",
    "load": "code that the driver refuses: heron/runtime/cuda/images.py; prepare again with older tools",
}
_STREAMS = "values without graphs are wrong: the kernel or library that the line names, under HERON_CUDA_STEPS=1"
_GRAPHS = "right on streams, wrong or refused as a graph: heron/runtime/cuda/graph.py, commands.py, warming.py"
_REACH = "a part that no real program needs: tests/gpu/reach.py has the program"


def climb(rung: Rung, limit: float) -> dict[str, Any]:
    """Run a rung; its facts, with ``failed`` if there is something wrong."""
    start = time.perf_counter()
    command = [sys.executable, "-X", "faulthandler", "-m", rung.module, *rung.arguments]
    here = Path(__file__).parents[2]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, cwd=here, check=False)
        facts = _facts(done)
    except subprocess.TimeoutExpired as late:
        said = late.stderr.decode(errors="replace") if isinstance(late.stderr, bytes) else late.stderr or ""
        facts = {"failed": f"not done after {limit:.0f} s", "stderr": said[-800:]}
    return {"rung": rung.name, "took": round(time.perf_counter() - start, 1), **facts}


def _facts(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    lines = done.stdout.strip().splitlines()
    facts = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    if facts.get("wrong"):
        return {**facts, "failed": str(facts["wrong"][0])[:300]}
    if done.returncode or not facts:
        return {**facts, "failed": f"ended with {done.returncode}", "stderr": done.stderr[-1500:]}
    return facts


def ladder(
    steps: Sequence[Sequence[Rung]], limit: float, seconds: float, tell: Callable[[dict[str, Any]], None]
) -> list[Rung]:
    """Climb; the rungs that failed. No rung begins after so many seconds, nor after one of the basics has failed."""
    end, failed, lock = time.monotonic() + seconds, [], threading.Lock()

    def one(rung: Rung) -> None:
        if time.monotonic() > end:
            facts: dict[str, Any] = {"rung": rung.name, "failed": "not begun: no time is left"}
        else:
            facts = climb(rung, limit)
        with lock:
            tell(facts)
            if "failed" in facts:
                failed.append(rung)

    for step in steps:
        with ThreadPoolExecutor(min(AT_ONCE, len(step))) as threads:
            list(threads.map(one, step))
        if len(step) == 1 and failed and step[0] is failed[-1] and step[0].name in ("driver", "copies"):
            break
    return failed


@click.command()
@click.option("--rehearse", is_flag=True, help="On a driver that records, with no GPU.")
@click.option("--prepared", default="", help="A folder that benchmarks.gpu.prepare filled.")
@click.option("--limit", type=float, default=LIMIT, show_default=True, help="Seconds of a rung.")
@click.option("--seconds", type=float, default=180.0, show_default=True, help="Begin no rung after so many.")
@click.option("--only", default="", help="Only rungs whose name contains this text.")
@click.option("--out", default="", help="The file of JSON lines [default: first.jsonl in $OUT or here].")
def main(rehearse: bool, prepared: str, limit: float, seconds: float, only: str, out: str) -> None:
    """Climb the ladder."""
    path = Path(out or Path(os.environ.get("OUT", ".")) / "first.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")

    def tell(facts: dict[str, Any]) -> None:
        line = json.dumps(facts)
        with path.open("a") as file:
            file.write(line + "\n")
        click.echo(line[:300])

    steps = [[r for r in step if only in r.name] for step in rungs(rehearse, prepared)]
    steps = [step for step in steps if step]
    failed = ladder(steps, limit, seconds, tell)
    count = sum(map(len, steps))
    if not failed:
        click.echo(f"all {count} rungs are climbed; next: tests/gpu, then benchmarks.gpu. All facts: {path}")
        return
    click.echo(f"{len(failed)} of {count} rungs failed: {', '.join(r.name for r in failed)}. Look first at:")
    for rung in {r.next: r for r in reversed(failed)}.values():
        click.echo(f"- {rung.name}: {rung.next}")
        click.echo(f"  again: python -m {rung.module} {' '.join(rung.arguments)}")
    sys.exit(1)


if __name__ == "__main__":
    main()
