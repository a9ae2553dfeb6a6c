"""``python -m benchmarks.gpu [NAME…]``: every program on the GPU, whole beside its peers, and its kernels one by one.

Writes all figures (``results.json``) and a table (``results.md``) into a folder after each program, the ones that tell
most first. A second call goes on where the first one ended, so that a machine lent for minutes is enough.
``--rehearse`` does all of it on a driver that records, with XLA and PyTorch on the CPU: the figures mean nothing then,
the way to them is what is tried.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from benchmarks import programs
from benchmarks.compare import Refused
from benchmarks.gpu import sources
from benchmarks.gpu.report import page, plain, unplain
from benchmarks.gpu.side import Side
from benchmarks.gpu.whole import PEERS, whole
from heron import files
from heron.errors import HeronError

#: what moves data, what multiplies, what launches: these tell most; then the others, short texts first
FIRST = (
    "gelu_f32 softmax layernorm row_sum col_sum transpose_chain matmul_bf16_gelu adam_200 heat_while attention_f32 "
    "reductions cumsum1 concat_pad_slice matmul_f32 gelu_bf16 transformer_block rmsnorm_swiglu seed_int8xbf16 nbody "
    "mandelbrot int8_quant_matmul cumsum attention_bf16_grad kv_decode sort_topk uniform lstm_scan gpt2_train_step"
).split()


def in_order(names: Sequence[str]) -> list[str]:
    """The programs, those that tell most first."""
    rest = sorted(set(names) - set(FIRST), key=lambda n: len(sources.text(n, small=False)))
    return [n for n in FIRST if n in names] + rest


class Figures:
    """What was measured so far, kept in files."""

    def __init__(self, folder: Path, fixed: Mapping[str, Any]) -> None:
        self.folder = folder
        path = folder / "results.json"
        self.held: dict[str, Any] = unplain(json.loads(path.read_text())) if path.exists() else {}
        if any(self.held.get(k, v) != v for k, v in fixed.items()):
            raise click.ClickException(f"{path} has figures of another kind: give another --out")
        self.held = {"programs": [], "kernels": [], **self.held, **fixed}

    def has(self, name: str) -> bool:
        """Whether a program was measured."""
        return any(p["name"] == name for p in self.held["programs"])

    def add(self, row: dict[str, Any], kernels: list[dict[str, Any]]) -> None:
        """Keep a program and its kernels."""
        self.held["programs"].append(row)
        self.held["kernels"] += kernels
        self.write()

    def write(self) -> str:
        """Both files; the table."""
        text = page(self.held)
        self.folder.mkdir(parents=True, exist_ok=True)
        files.write_text(self.folder / "results.json", json.dumps(plain(self.held), indent=1) + "\n")
        files.write_text(self.folder / "results.md", text)
        return text


def describe(figures: Figures, sides: Mapping[str, Side]) -> None:
    """What the device and the sides are. Raises `Refused` when heron finds no device."""
    if "device" not in figures.held:
        figures.held |= sides["heron"].ask(do="device")
    versions = figures.held.setdefault("versions", {"python": platform.python_version()})
    for name, side in sides.items():
        if name not in versions and name != "heron":
            try:
                versions[name] = side.ask(do="versions")["versions"]
            except Refused as refusal:
                versions[name] = f"refused: {refusal}"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--small", is_flag=True, help="The scaled-down programs.")
@click.option("--repeats", type=click.IntRange(min=1), default=9, show_default=True, help="Timed runs of each.")
@click.option("--peers", default=",".join(PEERS), show_default=True, help="What runs beside heron, by commas; or none.")
@click.option("--no-kernels", is_flag=True, help="Whole programs only.")
@click.option("--seconds", type=float, default=1e9, help="Begin no program after so many.")
@click.option("--prepared", default="", help="A folder that benchmarks.gpu.prepare filled.")
@click.option("--rehearse", is_flag=True, help="With no GPU: on a driver that records. The figures mean nothing.")
@click.option("--out", default=None, help="The folder for table and figures [default: $OUT, or gpu-results].")
def main(
    names: tuple[str, ...],
    small: bool,
    repeats: int,
    peers: str,
    no_kernels: bool,
    seconds: float,
    prepared: str,
    rehearse: bool,
    out: str | None,
) -> None:
    """Measure NAMES (default: every program) on the first GPU."""
    end = time.monotonic() + seconds
    for name in names:
        sources.text(name, small)  # there is none: an error now, not later
    fixed = {"small": small, "rehearsed": rehearse, "host": platform.machine()}
    figures = Figures(Path(out or os.environ.get("OUT") or "gpu-results"), fixed)
    flags = ("--rehearse",) * rehearse + (("--prepared", prepared) if prepared else ())
    figures.folder.mkdir(parents=True, exist_ok=True)
    names_of_sides = ("heron", *[p for p in peers.split(",") if p and p != "none"])
    sides = {s: Side(s, *flags, log=figures.folder / f"{s}.log") for s in names_of_sides}
    left = [n for n in in_order(names or [*programs.names(), *sources.of_reach()]) if not figures.has(n)]
    try:
        describe(figures, sides)
        with tempfile.TemporaryDirectory() as folder:
            while left and time.monotonic() < end:
                click.echo(f"{left[0]} …", err=True)
                row = whole(left.pop(0), sides, small, repeats, Path(folder))
                figures.add(row, [] if no_kernels else kernels(row, sides["heron"], repeats))
    except Refused as refusal:
        raise click.ClickException(f"heron does not run here: {refusal}") from None
    finally:
        for side in sides.values():
            side.close()
    click.echo(figures.write())
    later = f"; not begun: {', '.join(left)}: the same command goes on there" if left else ""
    click.echo(f"written to {figures.folder}/results.md and results.json{later}", err=True)


def kernels(row: dict[str, Any], side: Side, repeats: int) -> list[dict[str, Any]]:
    """The kernels of the program measured last; a refusal goes into its row."""
    if row["heron"]["refused"]:
        return []
    try:
        return side.ask(do="kernels", repeats=repeats)["kernels"]
    except Refused as refusal:
        row["heron"]["refused"] = f"kernels: {refusal}"
        return []


if __name__ == "__main__":
    try:
        main()
    except HeronError as error:
        sys.exit(error.render())
