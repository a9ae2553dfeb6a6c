"""The entry point: finds the verb, runs it, and turns every failure into a message and an exit code."""

from __future__ import annotations

import contextlib
import difflib
import io
import json
import os
import pkgutil
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from heron import __version__, configuration, files
from heron.cli import verbs
from heron.cli.interrupts import is_interrupted, none_dropped
from heron.errors import HeronError

OK, DIFFERENT, BAD_INPUT, BUG, PIPE_CLOSED, INTERRUPTED = 0, 1, 2, 3, 141, 130


class Verbs(click.Group):
    """Commands found as modules of `heron.cli.verbs`, each imported when asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(verbs.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        return import_module(f"{verbs.__name__}.{cmd_name.replace('-', '_')}").command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], known, 1)
            hint = f"did you mean 'heron {near[0]}'?" if near else f"commands are {', '.join(known)}"
            raise HeronError("CLI001", f"unknown command '{args[0]}'", hint=hint)
        strange = sorted(set(configuration.current().commands) - set(known))
        if strange:
            where, hint = configuration.current().path, f"commands are {', '.join(known)}"
            raise HeronError("CLI083", f"there is no command 'heron {strange[0]}'", where=where, hint=hint)
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            ctx.default_map = {name: defaults(name, command)}
        return name, command, rest


def defaults(verb: str, command: click.Command) -> dict[str, object]:
    """The values that ``heron.toml`` has for the options of a command, by parameter. Raises CLI083 for other names."""
    file = configuration.current()
    known = {o[2:]: p for p in command.params for o in p.opts if o.startswith("--")}
    found = {}
    for name, value in file.commands.get(verb, {}).items():
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"options are {', '.join(known)}"
            raise HeronError("CLI083", f"'heron {verb}' has no option '--{name}'", where=file.path, hint=hint)
        found[known[name].name or name] = value
    return found


_EPILOG = """\b
Examples:
  heron run model.hlo --random 0
  heron compile model.hlo --target sm_90 --to ptx
  heron opt model.hlo -p dce,cse
  heron run - --random 0 < model.hlo

\b
Exit codes: 0 fine, 1 values differ, 2 bad input or usage, 3 a bug in heron, 130 interrupted.
"""

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Verbs, epilog=_EPILOG, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="heron")
def cli() -> None:
    """A tensor compiler you can read: HLO in, results or machine code out."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and exit with its code."""
    _buffer_standard_output()
    code = invoke(sys.argv[1:] if argv is None else argv)
    watchdog = sys.modules.get("heron.backends.watchdog")
    if watchdog is not None and watchdog.is_busy():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # what a thread is at must not be taken down around it
    sys.exit(code)


def invoke(argv: Sequence[str]) -> int:
    """Run a command line; gives its exit code and never raises."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # None: closed by the caller
    sys.stderr = sys.stderr or open(os.devnull, "w")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a character gets '?', not a crash
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        with none_dropped():
            code = _run(list(argv))
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader (head, less) has seen enough
        _forget_output()
        return PIPE_CLOSED
    except OSError as error:  # what is left is writing to standard output: a full disk behind a redirection
        _forget_output()
        return _fail(files.os_error("CLI012", "cannot write to standard output", error), [])


def _forget_output() -> None:
    """Discard the buffered output, so that Python does not fail again on it when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _buffer_standard_output() -> None:
    """Buffer standard output: unbuffered, Python ignores a short write, such as on a full disk."""
    old, raw = sys.stdout, getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), old.encoding, old.errors, line_buffering=True)


def _run(argv: list[str]) -> int:
    try:
        code = cli.main(argv, prog_name="heron", standalone_mode=False)
        return code if isinstance(code, int) else OK
    except HeronError as error:
        return _fail(error, argv)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return BAD_INPUT
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        path = context.command_path if context else "heron"
        return _fail(HeronError("CLI002", _sentence(error.format_message()), hint=f"{path} --help"), argv)
    except (KeyboardInterrupt, click.exceptions.Abort):
        return _interrupted()
    except MemoryError as error:
        hint = "a smaller program or smaller inputs"
        return _fail(HeronError("CLI003", "out of memory", why=str(error) or None, hint=hint), argv)
    except SystemExit:  # click's answer to a closed pipe, with the code that here means other values
        raise BrokenPipeError from None
    except OSError as error:
        if error.filename is None:  # not a file that was named: writing to standard output
            raise
        return _fail(files.os_error("CLI010", f"cannot use '{error.filename}'", error), argv)
    except Exception as error:
        if is_interrupted(error):
            return _interrupted()
        # a bug: still one message, not a page of Python
        if os.environ.get("HERON_TRACEBACK"):
            raise
        _fail(_bug(error), argv)
        return BUG


def _interrupted() -> int:
    click.echo("\ninterrupted", err=True)
    return INTERRUPTED


def _fail(error: HeronError, argv: list[str]) -> int:
    """Report `error`: as text on stderr, and as the JSON document on stdout with ``--json``.

    One that does not say what to try has the cure of its code.
    """
    if not error.hint:
        error = HeronError(error.code, error.what, where=error.where, why=error.why, hint=_cure(error.code))
    click.echo(f"{error.render()}\n  more: heron explain {error.code}", err=True)
    if "--json" in argv:
        click.echo(json.dumps({"error": error.to_json()}))
    return BAD_INPUT


def _cure(code: str) -> str | None:
    """The cure of the page of codes as a hint; None where it has none, or cannot be read."""
    from heron.cli import explaining

    try:
        cure = explaining.find(code).cure.removesuffix(".")
    except HeronError:
        return None
    if len(cure) < 2:
        return None
    is_word = cure[1].islower()  # an option or a name keeps its capitals
    return cure[0].lower() + cure[1:] if is_word else cure


def _bug(error: Exception) -> HeronError:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else None
    what = f"a bug in heron: {type(error).__name__}: {error}"
    return HeronError("CLI099", what, where=where, hint="HERON_TRACEBACK=1 prints the traceback; please report it")


def _sentence(text: str) -> str:
    """Click's message in this project's form: no capital, no full stop."""
    text = text.strip().rstrip(".")
    return text[:1].lower() + text[1:]
