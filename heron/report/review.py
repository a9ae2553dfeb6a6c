"""The page of ``heron report``: all that a bug report or a review of a program's performance needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from heron.errors import HeronError
from heron.report.document import Block, Page, Section, Text
from heron.report.sections.decisions import decisions
from heron.report.sections.environment import environment
from heron.report.sections.kernels import kernels
from heron.report.sections.memory import memory
from heron.report.sections.peer import peer
from heron.report.sections.summary import compile_time, summary
from heron.report.subject import Peer, Subject


def review(subject: Subject, command: str) -> Page:
    """The page about a compiled program. ``command``: the command line that makes the page again."""
    target = subject.target.name
    page = Page(f"{subject.given.name} on {target}")
    again: list[Block] = [Text("the command that wrote this page", command, "sh")]
    page.sections += [summary(subject), kernels(subject), memory(subject), compile_time(subject), decisions(subject)]
    if subject.peer is not None:
        page.sections.append(peer(subject, subject.peer))
    page.sections += [environment(subject), Section("Again", again, {"command": command})]
    return page


def measure(
    subject: Subject, arrays: Sequence[np.ndarray], against_xla: bool, told: Callable[[str], None] = lambda _: None
) -> None:
    """Run the program on this machine's CPU, time its steps and, if asked, compare it with XLA:CPU.

    A program that XLA refuses is reported with a note in place of the comparison. ``told``: hears of each part as it
    begins.
    """
    told("whole runs")
    outputs = subject.run(arrays)
    told("each step")
    subject.time_steps(arrays)
    if not against_xla:
        return
    told("XLA:CPU beside it")
    try:
        subject.peer = Peer.of(subject, arrays, outputs)
    except HeronError as error:
        subject.trace.note(f"not compared with XLA: {error.what}" + (f" ({error.why})" if error.why else ""))
