"""A reduction's folder: the best program so far, and what was tried, so that an interrupted reduction goes on.

``program.hlo`` and ``inputs.npz`` are the best case, ``run.sh`` shows its fault, ``state.json`` says what is reduced
by which check, ``tried.jsonl`` has the outcome of every program tried.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict, field
from pathlib import Path
from typing import Any

from heron import __version__, files
from heron.errors import HeronError
from heron.records import dataclass
from heron.reduce.case import INPUTS, PROGRAM, Case
from heron.reduce.checks import Check, Finding

_STATE, _TRIED, SCRIPT = "state.json", "tried.jsonl", "run.sh"


@dataclass
class Store:
    """The folder of one reduction. `tried` maps keys of cases to whether they show the fault."""

    folder: Path
    extra: str = ""
    tried: dict[str, bool] = field(default_factory=dict)

    def open(self, start: Case, check: Check) -> str:
        """Make the folder ready; gives the key of the best case that an earlier run left, or "".

        Raises CLI012 if it cannot be made, CLI072 if it holds something else than an earlier run of this reduction.
        """
        state = self._state()
        wanted = {"start": start.key, "check": check.options() + self.extra}
        if state is not None and {k: state.get(k) for k in wanted} != wanted:
            why = f"it is of another program or check: {state.get('check')}"
            raise HeronError(
                "CLI072", f"'{self.folder}' holds another reduction", why=why, hint="another folder with -o"
            )
        self._wanted = wanted
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise files.os_error("CLI012", f"cannot make the folder '{self.folder}'", error) from None
        if state is None:
            return ""
        self.tried = dict(self._lines())
        return str(state.get("best", ""))

    def _state(self) -> dict[str, Any] | None:
        path = self.folder / _STATE
        if not path.exists():
            if self.folder.is_dir() and any(self.folder.iterdir()):
                why = "it is not empty, and no reduction wrote it"
                raise HeronError("CLI072", f"'{self.folder}' cannot take a reduction", why=why, hint="another -o")
            return None
        try:
            found = json.loads(files.read_text(path))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise HeronError("CLI072", f"'{path}' is damaged", why="it is not a JSON object", hint="another -o")
        return found

    def _lines(self) -> list[tuple[str, bool]]:
        """The outcomes so far; a last line that was cut off is left out."""
        path, found = self.folder / _TRIED, []
        for line in files.read_text(path).splitlines() if path.exists() else []:
            try:
                key, shown = json.loads(line)
            except ValueError:
                continue
            found.append((str(key), bool(shown)))
        return found

    def note(self, case: Case, shown: bool) -> None:
        """Remember the outcome of a case."""
        self.tried[case.key] = shown
        with open(self.folder / _TRIED, "a") as file:
            file.write(json.dumps([case.key, shown]) + "\n")

    def keep(self, case: Case, check: Check, finding: Finding) -> None:
        """Write the best case so far, and the script that shows its fault. Raises CLI012."""
        case.write(self.folder)
        files.write_text(self.folder / SCRIPT, script(check, finding, self.extra))
        (self.folder / SCRIPT).chmod(0o755)
        state = {**self._wanted, "best": case.key, "instructions": case.count, "finding": asdict(finding)}
        files.write_text(self.folder / _STATE, json.dumps(state, indent=1, allow_nan=True) + "\n")


def script(check: Check, finding: Finding, extra: str = "") -> str:
    """A shell script that shows the fault of the case in its folder; it ends with 1 while the fault is there."""
    return f"""#!/bin/sh
# {" ".join(finding.text.split())}
# heron {__version__}; exit code 1: the fault is there, 0: it is gone
folder=$(cd "$(dirname "$0")" && pwd) || exit 2
exec heron reduce "$folder/{PROGRAM}" --inputs "$folder/{INPUTS}" --once {check.options()}{extra}
"""


def quoted(option: str, values: tuple[str, ...]) -> str:
    """An option that may come several times, as words of a command line."""
    return "".join(f" {option} {shlex.quote(v)}" for v in values)
