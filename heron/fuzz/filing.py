"""Files what a search finds: reduced, in a folder of its own, with inputs, a script and words about it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from heron import __version__, files
from heron.errors import HeronError
from heron.fuzz.searching import Hunt, Trial
from heron.records import dataclass
from heron.reduce.case import Case
from heron.reduce.checks import Check, Crashes, Differs, Finding
from heron.reduce.reducing import Plan, reduce
from heron.reduce.store import SCRIPT, script

README, _ORIGINAL = "README.md", "original"


@dataclass(frozen=True)
class Filed:
    """A fault that was filed: its folder, the smallest program, the fault in words and the pass behind it."""

    folder: Path
    number: int
    case: Case
    finding: Finding
    culprit: str

    @property
    def likeness(self) -> tuple[str, ...]:
        """By what two faults are taken for one: kind, sign, pass, and the ops of the smallest program."""
        ops = {f"{i.opcode} {i.shape.element_type}" for i in self.case.module.instructions()}
        return self.finding.kind, self.finding.sign, self.culprit, *sorted(ops)

    def to_json(self) -> dict[str, object]:
        """The facts as plain JSON values."""
        facts = {"folder": str(self.folder), "number": self.number, "fault": self.finding.text}
        return {**facts, "culprit": self.culprit, "instructions": self.case.count}


class Files:
    """The folder of a search's findings; each kind of fault is filed once.

    Args:
        folder: where the findings go; made when the first one is filed.
        seconds: how long a reduction may take.
        extra: options of `heron reduce` that scripts repeat.
    """

    def __init__(self, folder: Path, hunt: Hunt, seconds: float, extra: str = "") -> None:
        self.folder, self._hunt, self._seconds, self._extra = folder, hunt, seconds, extra
        self.filed: list[Filed] = []
        self.again = 0

    def file(self, trial: Trial, finding: Finding) -> Filed | None:
        """Reduce and file a fault; None if one like it is filed already. Raises CLI012."""
        folder = self.folder / f"finding-{self._hunt.seed}-{trial.number}"
        if folder.exists():
            shutil.rmtree(folder)  # what the same command left before
        check = self._check(finding)
        filed = self._reduced(trial, check, folder) or self._whole(trial, finding, folder)
        if filed.likeness in (f.likeness for f in self.filed):
            self.again += 1
            shutil.rmtree(folder)
            return None
        self.filed.append(filed)
        files.write_text(folder / f"{_ORIGINAL}.hlo", trial.case.text)
        files.write_text(folder / README, self._words(filed, trial))
        return filed

    def _check(self, finding: Finding) -> Check:
        if finding.kind == "differs":
            return Differs(self._hunt.target, self._hunt.against, self._hunt.settings)
        return Crashes(self._hunt.target, self._hunt.settings)

    def _reduced(self, trial: Trial, check: Check, folder: Path) -> Filed | None:
        """The fault reduced; None where the check of a reduction does not see it, or not each time."""
        hunt = self._hunt
        plan = Plan(folder, hunt.jobs, self._seconds, hunt.timeout, hunt.loads, self._extra)
        try:
            result = reduce(trial.case, check, plan)
        except HeronError as error:
            if error.code not in ("CLI071", "CLI073", "CLI074"):
                raise
            return None
        return Filed(folder, trial.number, result.best, result.finding, result.culprit)

    def _whole(self, trial: Trial, finding: Finding, folder: Path) -> Filed:
        folder.mkdir(parents=True, exist_ok=True)
        trial.case.write(folder)
        files.write_text(folder / SCRIPT, script(replace(trial.check, errors=None), finding, self._extra))
        return Filed(folder, trial.number, trial.case, finding, "")

    def _words(self, filed: Filed, trial: Trial) -> str:
        hunt = self._hunt
        source = "a program of the corpus, changed" if hunt.corpus else "a generated program"
        blame = f"\nThe pass behind it: {filed.culprit}.\n" if filed.culprit else ""
        return f"""# {filed.finding.text.splitlines()[0]}

Found by heron {__version__}: {source}, number {trial.number} of seed {hunt.seed}, {hunt.target} against {hunt.against}.
{blame}
`{SCRIPT}` shows the fault; its exit code is 1 while the fault is there. `{_ORIGINAL}.hlo` is the program as it was
found, {trial.case.count} instructions; the smallest one has {filed.case.count}:

```
{filed.case.text}```
"""
