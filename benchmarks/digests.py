"""``python -m benchmarks.digests write OUT.json``, ``… compare A.json B.json``: proves that a change altered no code.

Writes a digest of each stage's text for every program and target. A refactoring must leave all of them as they were.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path

import click

import heron
from benchmarks import programs
from heron import targets
from heron.backends.compiler import Compilation
from heron.cli.progress import counted
from heron.errors import HeronError
from heron.options import Options
from heron.trace import Trace

#: the stages of each target, and the platform its programs were lowered for
TARGETS = {
    "cpu": ("cpu", ("fused", "scheduled", "buffers", "llvm")),
    "sm_90": ("cuda", ("fused", "scheduled", "buffers", "ptx")),
    "sim:sm_90": ("cpu", ("fused", "scheduled", "buffers", "llvm")),
}
Digests = dict[str, str]


def digests(name: str, target: str, small: bool) -> Digests:
    """Of each stage of a program, under ``program target stage``. A stage that is refused has the error's code."""
    platform, stages = TARGETS[target]
    source = heron.parse(programs.path(name, small, platform).read_text())
    compilation = Compilation(source, targets.get(target), Options(), Trace())
    return {f"{name} {target} {stage}": _digest(compilation, stage) for stage in stages}


def _digest(compilation: Compilation, stage: str) -> str:
    try:
        return sha256(compilation.text(stage).encode()).hexdigest()[:16]
    except HeronError as error:
        return error.code


def differences(old: Digests, new: Digests) -> Iterator[str]:
    """A line for each stage that is not the same in both."""
    for key in sorted(old.keys() | new.keys()):
        before, after = old.get(key, "absent"), new.get(key, "absent")
        if before != after:
            yield f"{key}: {before} -> {after}"


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.argument("names", nargs=-1)
@click.option("--small/--full", default=False, help="The scaled-down programs.")
@click.option("--target", "wanted", type=click.Choice(list(TARGETS)), multiple=True, help="Only this target.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
def write(out: Path, names: tuple[str, ...], small: bool, wanted: tuple[str, ...], jobs: int) -> None:
    """Write the digests of programs NAMES, all by default, to OUT."""
    found: Digests = {}
    todo = [(name, target) for target in wanted or TARGETS for name in names or programs.names()]
    with ProcessPoolExecutor(jobs) as pool:
        running = [pool.submit(digests, name, target, small) for name, target in todo]
        with counted("programs", len(todo)) as say:
            for n, (one, (name, target)) in enumerate(zip(running, todo, strict=True)):
                say(n, f"{name} for {target}")
                found |= one.result()
    out.write_text(json.dumps(found, indent=1, sort_keys=True))
    click.echo(f"{len(found)} digests in {out}")


@main.command()
@click.argument("old", type=click.Path(exists=True, path_type=Path))
@click.argument("new", type=click.Path(exists=True, path_type=Path))
def compare(old: Path, new: Path) -> None:
    """Name the stages whose text differs between OLD and NEW; exit with 1 if there are any."""
    before, after = json.loads(old.read_text()), json.loads(new.read_text())
    changed = list(differences(before, after))
    for line in changed:
        click.echo(line)
    click.echo(f"{len(changed)} of {len(before)} digests differ")
    raise SystemExit(bool(changed))


if __name__ == "__main__":
    main()
