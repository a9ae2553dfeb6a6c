"""`heron.lock`: choices measured on devices, as text that users keep beside their programs.

A compile is a function of program, target, options and this file: what it says is done, what it does not say is chosen
by a model. An entry names the device, the part of a program (a fragment, by the digest of its HLO), what was chosen and
its time, and the runner-up.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tomllib
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from heron import files
from heron.errors import HeronError
from heron.records import dataclass

VERSION = 1
_HEAD = f"# Choices measured on devices: `heron tune` writes this file, compiles read it.\nversion = {VERSION}\n"


@dataclass(frozen=True, slots=True)
class Choice:
    """The best choice for a fragment on a device; times in microseconds. ``what``: the fragment's name for readers."""

    device: str
    fragment: str
    what: str
    choice: str
    microseconds: float
    runner_up: str = ""
    runner_up_microseconds: float = 0.0


@dataclass
class Lock:
    """Choices by device and fragment."""

    choices: dict[tuple[str, str], Choice] = field(default_factory=dict)

    @property
    def devices(self) -> list[str]:
        """The devices with choices."""
        return sorted({device for device, _ in self.choices})

    def find(self, device: str, fragment: str) -> Choice | None:
        return self.choices.get((device, fragment))

    def add(self, choice: Choice) -> None:
        """Add a choice; it replaces an older one."""
        self.choices[choice.device, choice.fragment] = choice

    def text(self) -> str:
        """The file's text; equal choices give equal text."""
        parts = [_HEAD]
        for key in sorted(self.choices):
            fields = dataclasses.asdict(self.choices[key])
            lines = [f"{name} = {_value(v)}" for name, v in fields.items() if v not in ("", 0.0)]
            parts.append("\n[[choice]]\n" + "\n".join(lines) + "\n")
        return "".join(parts)

    def write(self, path: str | Path) -> None:
        """Write the file. Raises CLI012 if it cannot be written."""
        files.write_text(path, self.text())


def _value(v: object) -> str:
    return f"{v:.3f}" if isinstance(v, float) else '"' + str(v).replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse(text: str, name: str = "heron.lock") -> Lock:
    """The choices in a text. Raises TUNE001, with the invalid entry, for a text that is not a lock file."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad(name, str(error)) from None
    if found.get("version") != VERSION:
        raise _bad(name, f"its version is {found.get('version')}, not {VERSION}")
    lock, entries = Lock(), found.get("choice", [])
    if not isinstance(entries, list):
        raise _bad(name, "its choices are no list of [[choice]]")
    for n, entry in enumerate(entries, 1):
        lock.add(_choice(entry, n, name))
    return lock


def _choice(entry: Any, n: int, name: str) -> Choice:
    kinds = {f.name: (float, int) if "microseconds" in f.name else str for f in dataclasses.fields(Choice)}
    if not isinstance(entry, dict) or any(not isinstance(v, kinds.get(k, ())) for k, v in entry.items()):
        raise _bad(name, f"choice {n} has a field that is unknown or of another type")
    try:
        return Choice(**entry)
    except TypeError:
        raise _bad(name, f"choice {n} lacks a field; it needs device, fragment, what, choice, microseconds") from None


def _bad(name: str, why: str) -> HeronError:
    hint = "`heron tune` writes a new one"
    return HeronError("TUNE001", f"'{name}' is not a lock file that heron reads", why=why, hint=hint)


def read(path: str | Path) -> Lock:
    """The lock file at a path. Raises CLI010, CLI011, TUNE001."""
    return _parsed(files.read_text(path), str(path))


@lru_cache(maxsize=8)
def _parsed(text: str, name: str) -> Lock:
    return parse(text, name)


def digest(text: str) -> str:
    """The name of a fragment, from its canonical text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
