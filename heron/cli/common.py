"""Parts that several verbs share: FILE arguments, ``--json``, ``-O NAME=VALUE``, loading a module, printing."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from heron import files
from heron.errors import HeronError
from heron.options import Options

if TYPE_CHECKING:
    import numpy as np
    from rich.table import Table

    from heron.hlo.ir.module import Module
    from heron.options import Options

F = TypeVar("F", bound=Callable[..., Any])

file_argument = click.argument("file", metavar="FILE")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
target_option = click.option(
    "--target",
    default="cpu",
    show_default=True,
    metavar="T",
    help="Machine to compile for; `heron targets` lists them.",
)
settings_option = click.option(
    "-O",
    "--option",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a compile option, e.g. -O math=fast; overrides HERON_* variables.",
)

memory_limit_option = click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Recompute values to stay below this peak: 24MiB, or 60% of temp; overrides HERON_MEMORY_LIMIT.",
)


#: how a program is spread over devices
_SPREAD = (
    click.option("--mesh", metavar="x=2,y=4", default="", help="Axes of the devices; those that FILE names if none."),
    click.option(
        "--in",
        "inputs",
        metavar="N=x,y",
        multiple=True,
        help="Split parameter N: one entry a dimension, axes joined by '+', '-' for none, '?' where more may follow.",
    ),
    click.option("--out", "outputs", metavar="N=x,y", multiple=True, help="Split result N, in the same form."),
    click.option("--auto", is_flag=True, help="Split parameters that have no sharding in the cheapest way found."),
    click.option("--memory", metavar="80GiB", help="With --auto: the memory of a device."),
)

timeout_option = click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.IntRange(min=1),
    help="Stop after this time and name the step in progress; for compiles, overrides HERON_COMPILE_TIMEOUT.",
)


def late(what: str, seconds: int | None) -> HeronError:
    """The error for work that exceeds ``--timeout``."""
    return HeronError("CLI048", f"{what} takes longer than {seconds} s", hint="a higher --timeout, or smaller inputs")


def spread_options(command: F) -> F:
    """The options ``--mesh``, ``--in``, ``--out``, ``--auto`` and ``--memory``."""
    for option in reversed(_SPREAD):
        command = option(command)
    return command


def examples(*lines: str) -> str:
    """An epilog with example command lines, kept as they are."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def read_source(file: str) -> tuple[bytes, str]:
    """The content of FILE and its name in messages; ``-`` is standard input. Raises CLI010."""
    if file != "-":
        return files.read_bytes(file), file
    if sys.stdin is None:
        raise files.unreadable("<stdin>", "it is closed")
    if sys.stdin.isatty():
        click.echo("reading a program from standard input, end with Ctrl-D", err=True)
    return files.read_stream(sys.stdin.buffer, "<stdin>"), "<stdin>"


def load_module(
    file: str,
    target: str = "cpu",
    *,
    sizes: bool = True,
    arrays: Callable[[], Sequence[np.ndarray]] = tuple,
) -> Module:
    """Read and verify FILE in any form that `heron.frontends` reads; a JAX function in a file is lowered for `target`.

    Sizes that StableHLO leaves open come from the shapes in parentheses after FILE, or from `arrays`.

    Raises a located HeronError for invalid input, and HLO031 for dimensions without a bound if `sizes` are needed.
    """
    module = _load(file, target, arrays)
    if sizes:
        module.need_bounds()
    return module


def _load(file: str, target: str, arrays: Callable[[], Sequence[np.ndarray]]) -> Module:
    from heron.frontends import from_bytes, load
    from heron.frontends.arguments import split

    if ".py:" in file or file.endswith(".py"):
        return load(file, verify=True, platform="cpu" if target.startswith(("cpu", "x86")) else "cuda")
    file, shapes = split(file)
    data, name = read_source(file)
    try:
        return from_bytes(data, name, verify=True, arguments=shapes)
    except HeronError as error:
        known = arrays() if error.code == "SHLO011" and not shapes else ()
        if not known:
            raise
    return from_bytes(data, name, verify=True, arguments=known)


def make_options(settings: tuple[str, ...], memory_limit: str | None = None, timeout: int | None = None) -> Options:
    """Options of the environment, changed by ``-O`` settings, by ``--memory-limit`` and by ``--timeout``."""

    options = Options.from_env().with_settings(settings)
    if timeout is not None:
        options = options.replace(compile_timeout=timeout)
    return options if memory_limit is None else options.with_settings([f"memory_limit={memory_limit}"])


def print_json(document: Any) -> None:
    """One JSON document on standard output; NaN and infinities as strings, which plain JSON lacks."""
    click.echo(json.dumps(_plain(document), allow_nan=False))


def print_text(text: str, err: bool = False) -> None:
    """Text on standard output (or standard error), with exactly one newline at the end."""
    click.echo(text if text.endswith("\n") else text + "\n", nl=False, err=err)


def print_table(table: Table, err: bool = False) -> None:
    """A table as text, within 100 columns (fewer on a narrower terminal), without trailing blanks."""
    import io
    import shutil

    from rich.console import Console

    width = min(100, shutil.get_terminal_size((100, 24)).columns) if sys.stdout.isatty() else 100
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, highlight=False, markup=False, emoji=False).print(table)
    print_text("\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n"), err)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    return value
