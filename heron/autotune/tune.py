"""The loop: every candidate of every fragment is checked and measured, within a budget of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from heron.analysis.blocks.config import BlockConfig
from heron.autotune.fragments import Fragment
from heron.errors import HeronError
from heron.lockfile import Choice


class Measure(Protocol):
    """What measures a candidate."""

    def __call__(self, fragment: Fragment, config: BlockConfig) -> float:
        """Seconds of one run. Raises HeronError when the candidate cannot be built, cannot run, or is wrong."""
        ...


@dataclass
class Result:
    """``choices`` to keep, ``refused`` candidates with reasons, fragments ``skipped`` because no time was left.

    ``stopped``: why it ended before all was measured: by the user, or because the device was lost.
    """

    choices: list[Choice] = field(default_factory=list)
    refused: list[tuple[str, str, str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    stopped: str = ""


def tune(
    fragments: Iterable[Fragment],
    device: str,
    measure: Measure,
    *,
    budget: float = 600.0,
    progress: Callable[[str], None] = lambda _: None,
    keep: Callable[[Choice], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Result:
    """Measure all candidates; the quickest of each fragment becomes its choice.

    Args:
        device: the name choices are kept under.
        budget: seconds; what is not begun by then is skipped.
        progress: told of each candidate as a line.
        keep: told of each choice as soon as it is made.

    Ctrl-C ends it with what was found so far, a fragment's candidates that were measured included.
    """
    end, result = clock() + budget, Result()
    for fragment in fragments:
        if clock() >= end or result.stopped:
            result.skipped.append(fragment.fusion.name)
            continue
        times: list[tuple[float, BlockConfig]] = []
        try:
            for n, config in enumerate(fragment.candidates, 1):
                if (times and clock() >= end) or result.stopped:
                    break
                progress(f"{fragment.fusion.name}: {config} ({n} of {len(fragment.candidates)})")
                _try(fragment, config, measure, times, result)
        except KeyboardInterrupt:
            result.stopped = "interrupted"
        if times:
            result.choices.append(_choice(fragment, device, times))
            keep(result.choices[-1])
    return result


def _try(
    fragment: Fragment, config: BlockConfig, measure: Measure, times: list[tuple[float, BlockConfig]], result: Result
) -> None:
    """Measure a candidate; a refusal is kept with its reason, and the last one when the device is lost."""
    try:
        times.append((measure(fragment, config), config))
    except HeronError as error:
        if error.code == "RUN054":
            result.stopped = error.what
        else:
            why = f"{error.what}: {error.why}" if error.why else error.what
            result.refused.append((fragment.fusion.name, str(config), why))


def _choice(fragment: Fragment, device: str, times: list[tuple[float, BlockConfig]]) -> Choice:
    """The quickest; of equals the one the model likes better."""
    (best, config), *others = sorted(times, key=lambda pair: pair[0])
    second, runner_up = (others[0][0], str(others[0][1])) if others else (0.0, "")
    return Choice(device, fragment.key, fragment.fusion.name, str(config), best * 1e6, runner_up, second * 1e6)
