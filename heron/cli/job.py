"""Shared by `run` and `eval`: find the inputs, report the outputs, compare, save."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heron.cli import room
from heron.cli.common import print_json, print_table
from heron.errors import HeronError
from heron.records import dataclass

if TYPE_CHECKING:
    import numpy as np

    from heron.cli.compare import Comparison
    from heron.hlo.ir.module import Module

F = TypeVar("F", bound=Callable[..., Any])


class Tolerance(click.ParamType):
    """The largest allowed error: not negative and not NaN."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not number >= 0:
            self.fail(f"{value} is not a number from 0 up", param, ctx)
        return number


@dataclass(frozen=True)
class Job:
    """The value options of a command line."""

    inputs: str | None
    random: int | None
    expect: str | None
    rtol: float | None
    atol: float | None
    save: str | None

    def arrays(self, module: Module) -> list[np.ndarray]:
        """The program's arguments: from ``--inputs``, ``--random`` or the file of ``--expect``.

        Raises CLI033 if there are none, CLI003 if memory does not suffice, and RUN001 to RUN003 if they do not fit.
        """
        from heron.cli import values

        if self.inputs is not None and self.random is not None:
            raise HeronError("CLI033", "both --inputs and --random are given", hint="one of them")
        if self.random is not None:
            room.require_for_inputs(module)
            return values.random(module, self.random)
        if self.inputs is not None:
            return values.fit(values.read(self.inputs).inputs, module, self.inputs)
        held = None if self.expect is None else values.read(self.expect)
        if held is not None and not held.plain:  # else it holds the outputs only
            return values.fit(held.inputs, module, held.name)
        needed = values.leaves(module)
        if not needed:
            return []
        why = "parameters: " + ", ".join(f"{name}: {shape.bare}" for name, shape in needed)
        raise HeronError(
            "CLI033", f"the program takes {len(needed)} arrays", why=why, hint="--random 0 or --inputs F.npz"
        )

    def at_hand(self) -> list[np.ndarray]:
        """The arguments in the given files, unchanged; they provide the sizes that a program leaves open."""
        from heron.cli import values

        path = self.inputs or self.expect
        if self.random is not None or path is None:
            return []
        held = values.read(path)
        return held.inputs if self.inputs or not held.plain else []

    def finish(
        self, arrays: Sequence[np.ndarray], outputs: list[np.ndarray], document: dict[str, Any], as_json: bool
    ) -> int:
        """Save, compare and print; gives the exit code: 1 when values differ."""
        rows = self.settle(arrays, outputs, document)
        if as_json:
            print_json(document)
        else:
            self.show(outputs, rows)
        return exit_code(rows)

    def settle(
        self, arrays: Sequence[np.ndarray], outputs: list[np.ndarray], document: dict[str, Any]
    ) -> list[Comparison]:
        """Save and compare, record both in `document`, and return the comparisons, if requested."""
        from heron.cli import compare, report, values

        rows: list[Comparison] = []
        if self.save is not None:
            values.write(self.save, arrays, outputs)
        if self.expect is not None:
            expected = values.read(self.expect)
            wanted = expected.inputs if expected.plain else expected.outputs
            rows = compare.compare_all(outputs, wanted, self.rtol, self.atol, self.expect)
        document["outputs"] = [report.facts(o) for o in outputs]
        if self.expect is not None:
            same = exit_code(rows) == 0
            document["expect"] = {"file": self.expect, "same": same, "outputs": [c.to_json() for c in rows]}
        return rows

    def show(self, outputs: list[np.ndarray], rows: list[Comparison]) -> None:
        """Print the outputs, or the comparison."""
        from heron.cli import report

        print_table(report.output_table(outputs) if not rows else report.comparison_table(rows))
        if self.expect is not None:
            click.echo(report.verdict(rows, self.expect))
        if self.save is not None:
            click.echo(f"saved to {self.save}")

    def for_device(self, number: int) -> Job:
        """A copy with the files of one device: ``{}`` in their names stands for its number."""
        names = {name: getattr(self, name) for name in ("inputs", "expect", "save")}
        return replace(self, **{name: v and v.replace("{}", str(number)) for name, v in names.items()})


def exit_code(rows: Sequence[Comparison]) -> int:
    """1 when values differ."""
    return 0 if all(c.ok for c in rows) else 1


def job_options(command: F) -> F:
    """Decorator: the options of `Job`, passed on as one ``job`` argument."""
    import functools

    @functools.wraps(command)
    def wrapped(
        inputs: str | None,
        random: int | None,
        expect: str | None,
        rtol: float | None,
        atol: float | None,
        save: str | None,
        **rest: Any,
    ) -> Any:
        return command(job=Job(inputs, random, expect, rtol, atol, save), **rest)

    made: Any = wrapped
    for option in (
        click.option("--save", metavar="F.npz", help="Write inputs and outputs to a file."),
        click.option("--atol", type=Tolerance(), metavar="X", help="Absolute tolerance (default: by dtype)."),
        click.option("--rtol", type=Tolerance(), metavar="X", help="Relative tolerance (default: by dtype)."),
        click.option("--expect", metavar="F.npz", help="Compare outputs with those in a file; exit 1 if they differ."),
        click.option(
            "--random", type=click.IntRange(min=0), metavar="SEED", help="Make up inputs; floats are in [0, 1)."
        ),
        click.option("--inputs", metavar="F.npz", help="Read inputs from a file."),
    ):
        made = option(made)
    return made
