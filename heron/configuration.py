"""``heron.toml``: options of compiles and of commands that a project or a person keeps in a file.

The file is the one that `HERON_CONFIG` names; otherwise the first ``heron.toml`` in the current folder or in a folder
above it; otherwise the user's, in ``~/.config/heron``. It has two kinds of tables:

    [options]          # fields of `heron.Options`; HERON_* variables and -O come before them
    math = "reassociate"

    [commands.run]     # options of `heron run`, by their long names
    target = "sim:sm_90"
"""

from __future__ import annotations

import functools
import os
from dataclasses import field
from pathlib import Path
from typing import Any

from heron import files
from heron.errors import HeronError
from heron.records import dataclass

NAME, VARIABLE = "heron.toml", "HERON_CONFIG"


@dataclass(frozen=True)
class Configuration:
    """The content of a file; all empty where there is none.

    Attributes:
        path: of the file, for messages.
        options: fields of `Options`, their values as text.
        commands: by verb, values by the long name of an option.
    """

    path: str = ""
    options: dict[str, str] = field(default_factory=dict)
    commands: dict[str, dict[str, Any]] = field(default_factory=dict)


def current() -> Configuration:
    """The file that applies here; read once by a process. Raises CLI010 where it cannot be read, and CLI082."""
    try:
        folder = os.getcwd()
    except OSError:  # the current folder was removed
        folder = ""
    return _found(folder, os.environ.get(VARIABLE), os.environ.get("XDG_CONFIG_HOME") or "")


@functools.lru_cache(maxsize=32)
def _found(folder: str, named: str | None, home: str) -> Configuration:
    """``named``: the value of `HERON_CONFIG`; empty text stands for no file at all."""
    if named is not None:
        return read(named) if named else Configuration()
    users = Path(home) if home else Path(os.path.expanduser("~"), ".config")
    places = [Path(folder), *Path(folder).parents] if folder else []
    for path in (*(p / NAME for p in places), users / "heron" / NAME):
        if os.path.isfile(path):
            return read(path)
    return Configuration()


def read(path: str | Path) -> Configuration:
    """The content of a file. Raises CLI010 where it cannot be read, CLI082 where it is not of the form above."""
    import tomllib

    text = files.read_text(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _wrong(path, "is not TOML", str(error)) from None
    for name, value in content.items():
        if name not in ("options", "commands") or not isinstance(value, dict):
            raise _wrong(path, f"has an unknown entry '{name}'", "its tables are [options] and [commands.VERB]")
    commands = content.get("commands", {})
    for verb, values in commands.items():
        if not isinstance(values, dict):
            raise _wrong(path, f"has a value for '{verb}' in [commands]", f"a table is expected: [commands.{verb}]")
    options = {name: _as_text(path, name, value) for name, value in content.get("options", {}).items()}
    return Configuration(str(path), options, commands)


def _as_text(path: str | Path, name: str, value: object) -> str:
    """A value as `Options` reads it from a variable."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (str, int)):
        return str(value)
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return ",".join(value)
    raise _wrong(path, f"has {value!r} as option '{name}'", "an option is text, a whole number, a switch or a list")


def _wrong(path: str | Path, what: str, why: str) -> HeronError:
    hint = "docs/use/configuration.md has an example; HERON_CONFIG= ignores the file"
    return HeronError("CLI082", f"'{path}' {what}", where=str(path), why=why, hint=hint)
