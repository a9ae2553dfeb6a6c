"""A bar or a line on stderr with the current step of long work; only on a terminal, and only after a short delay.

`progress` shows a compile, `evaluation` the evaluator, `counted` so many pieces of work, `at_step` any other work."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from heron.trace import Trace

if TYPE_CHECKING:
    from heron.evaluator.walker import Value, Watcher
    from heron.hlo.ir.evaluation import Device
    from heron.hlo.ir.instruction import Instruction
    from heron.runtime.executable import Executable

_PATIENCE = 0.7  # seconds of silence before the bar appears
#: the stages of a compile in order; those that a target has take a part of the bar each
_STAGES = ("hlo", "fused", "scheduled", "buffers", "emit", "llvm", "ptx", "machine code")


def is_shown() -> bool:
    """Whether anything is shown: on a terminal, and not beside a JSON document."""
    context = click.get_current_context(silent=True)
    return sys.stderr.isatty() and not (context is not None and context.params.get("as_json"))


@contextlib.contextmanager
def _display(what: str, *, bar: bool, total: int | None = None) -> Iterator[Callable[..., None]]:
    """A line that begins with `what`, with or without a bar; after a delay. Gives the function that changes it, which
    takes ``completed``, ``total`` and ``step``, the text at the end."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    latest = ""

    class Step(ProgressColumn):
        """The latest step, as it is when the line is drawn: steps may be told far more often."""

        def render(self, task: Task) -> Text:
            return Text(latest, no_wrap=True, overflow="ellipsis")

    class Screen(Console):
        def show_cursor(self, show: bool = True) -> bool:
            """Never hide the cursor: native code that Ctrl-C ends could not bring it back."""
            return False

    middle: list[ProgressColumn] = [BarColumn(20)] if bar else []
    columns = SpinnerColumn(), TextColumn("{task.description}"), *middle, TimeElapsedColumn()
    made = Progress(
        *columns,
        Step(),
        console=Screen(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # elsewhere it would end on the terminal
    )
    task = made.add_task(escape(what), total=total)
    timer = threading.Timer(_PATIENCE, made.start)
    timer.daemon = True

    def change(step: str = "", **fields: int | float | None) -> None:
        nonlocal latest
        latest = step
        if fields:
            made.update(task, **fields)  # type: ignore[arg-type]

    timer.start()
    try:
        yield change
    finally:
        timer.cancel()
        timer.join()
        made.stop()


@contextlib.contextmanager
def progress(trace: Trace, what: str) -> Iterator[None]:
    """Show `what`, the stages that are done, and the current stage, pass or kernel of `trace` while the block runs."""
    if not is_shown():
        yield
        return
    steps = 0
    with _display(what, bar=True) as change:

        def show(name: str) -> None:
            nonlocal steps
            steps += 1
            done = stages_done(trace)
            change(f"{name} ({steps} steps)", completed=done, total=len(_STAGES) if done else None)

        trace.on_event = show
        try:
            yield
        finally:
            trace.on_event = None


@contextlib.contextmanager
def at_step(what: str) -> Iterator[Callable[[str], None]]:
    """A line that begins with `what` and ends with the text of the latest call."""
    if not is_shown():
        yield lambda _: None
        return
    with _display(what, bar=False) as change:
        yield change


@contextlib.contextmanager
def counted(what: str, total: int = 0, quiet: bool = False) -> Iterator[Callable[..., None]]:
    """A bar of `total` pieces of work: call with the number of those that are done and the current one, and with
    another total where it is known only then.

    ``quiet``: show nothing; for commands that are no verbs and print one document."""
    if quiet or not is_shown():
        yield lambda *_: None
        return
    with _display(what, bar=True, total=total) as change:

        def say(done: float, current: str = "", total: int = total) -> None:
            change(f"{int(done)} of {total}  {current}", completed=done, total=total)

        say(0)
        yield say


@contextlib.contextmanager
def evaluation(name: str) -> Iterator[Watcher | None]:
    """Show the instruction that the evaluator has computed last: a function that is to be told of each; None where
    nothing is shown."""
    with at_step(f"evaluating {name}") as say:
        yield (lambda i, _: say(f"%{i.name}")) if is_shown() else None


@contextlib.contextmanager
def evaluation_on(devices: int, name: str) -> Iterator[Callable[[Device, Instruction, Value], None] | None]:
    """As `evaluation`, on several devices: also the one that computed it."""
    with at_step(f"evaluating {name} on {devices} devices") as say:
        yield (lambda d, i, _: say(f"device {d.number}: %{i.name}")) if is_shown() else None


@contextlib.contextmanager
def running(executable: Executable) -> Iterator[None]:
    """Show that a program runs, on the simulator with its kernel; Ctrl-C ends the process at once."""
    with at_step(f"running {executable.name} on {executable.target}") as say, interruptible():
        executable.on_kernel = say if is_shown() else None
        try:
            yield
        finally:
            executable.on_kernel = None


def stages_done(trace: Trace) -> int:
    """The stages before the latest one that the compile has come to."""
    known = [_STAGES.index(s.name) for s in trace.stages if s.name in _STAGES]
    return max(known, default=0)


@contextlib.contextmanager
def kept_when_interrupted(trace: Trace, path: str | None) -> Iterator[None]:
    """After Ctrl-C in the block write to `path` the record up to then, with a note about the step in progress."""
    try:
        yield
    except KeyboardInterrupt:
        if path is not None:
            trace.note(f"interrupted at {trace.at}")
            trace.save(path)
            print(f"\nthe trace up to {trace.at} is in {path}", file=sys.stderr)
        raise


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once while native code runs; Python's own handler would wait for that code."""
    import signal

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
