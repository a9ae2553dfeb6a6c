"""Executables as bytes: the container of saved programs (`heron.archive`), with the source and the options beside."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from heron.archive import container, modules
from heron.archive.loading import made
from heron.archive.saving import packed
from heron.errors import HeronError
from heron.pjrt.compile_options import CompileOptions
from heron.pjrt.loaded import About, LoadedExecutable

if TYPE_CHECKING:
    from heron.pjrt.client import Client

_SOURCE = "source.hlo"


def pack(executable: LoadedExecutable) -> bytes:
    """The bytes of an executable. Raises nothing: what has no machine code to write is written as its source alone."""
    facts: dict[str, Any] = {"options": executable.client.settled(executable.compile_options).changed()}
    members: dict[str, bytes] = {}
    if not executable.about.calls_python:
        with contextlib.suppress(HeronError):  # it holds what has no form in a file
            facts, members = packed(executable.program, kept=("scheduled",))
    facts["target"] = executable.client.target.name
    facts["sources"] = _sources()
    facts["pjrt"] = {"about": asdict(executable.about), "options": asdict(executable.compile_options)}
    return container.pack(facts, {**modules.pack(_SOURCE, executable.source), **members}, level=1)


def load(client: Client, data: bytes, options: CompileOptions | None) -> LoadedExecutable:
    """The executable of the bytes. Raises PJRT009 for bytes that are none, and what compiling raises."""
    try:
        manifest, members = container.unpack(data, "the executable")
        if _SOURCE not in members:
            raise KeyError(_SOURCE)
        about = _about(manifest["pjrt"]["about"])
        own = _options(manifest["pjrt"]["options"])
    except (HeronError, ValueError, KeyError, TypeError) as error:
        why = error.why if isinstance(error, HeronError) else str(error)
        raise HeronError(
            "PJRT009", "these bytes are not an executable that heron serialised", why=f"{data[:40]!r} …; {why}"
        ) from None
    options = options or own
    if _fits(manifest, client, options):
        with contextlib.suppress(HeronError):  # for a machine with other features
            program = made(manifest, members, "the executable")
            scheduled, source = (partial(modules.unpack, name, members) for name in (modules.SCHEDULED, _SOURCE))
            return LoadedExecutable(client, program, options, about, scheduled, source, data)
    compiled = client.compile(modules.unpack(_SOURCE, members), options)
    compiled.about = replace(compiled.about, fingerprint=about.fingerprint)  # whatever the program came as
    return compiled


def _about(plain: dict[str, Any]) -> About:
    return About(**{name: _tuples(value) for name, value in plain.items()})


def _options(plain: dict[str, Any]) -> CompileOptions:
    return CompileOptions(**{name: _tuples(value) for name, value in plain.items()})


def _tuples(value: Any) -> Any:
    """A value that JSON has made lists of."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _fits(manifest: dict[str, Any], client: Client, options: CompileOptions) -> bool:
    """Whether compiling the source here and now would give the same machine code."""
    return (
        "machine" in manifest
        and manifest["target"] == client.target.name
        and manifest["sources"] == _sources()
        and manifest["options"] == client.settled(options).changed()
    )


@cache
def _sources() -> str:
    from heron.caching import sources

    return sources()
