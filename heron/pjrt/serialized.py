"""Executables as bytes: the container of saved programs (`heron.archive`), with the source and the options beside."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any

from heron.archive import container
from heron.archive.loading import made
from heron.archive.saving import packed
from heron.errors import HeronError
from heron.pjrt.compile_options import CompileOptions
from heron.pjrt.loaded import About, LoadedExecutable

if TYPE_CHECKING:
    from heron.hlo.module import Module
    from heron.pjrt.client import Client

_SOURCE, _SCHEDULED = "source.hlo", "stages/scheduled.txt"


def pack(executable: LoadedExecutable) -> bytes:
    """The bytes of an executable. Raises nothing: what has no machine code to write is written as its source alone."""
    facts: dict[str, Any] = {"options": executable.compile_options.options().changed()}
    members: dict[str, bytes] = {}
    if not executable.about.calls_python:
        with contextlib.suppress(HeronError):  # it holds what has no form in a file
            facts, members = packed(executable.program, kept=("scheduled",))
    facts["target"] = executable.client.target.name
    facts["sources"] = _sources()
    facts["pjrt"] = {"about": asdict(executable.about), "options": asdict(executable.compile_options)}
    return container.pack(facts, {_SOURCE: executable.source.encode(), **members}, level=1)


def load(client: Client, data: bytes, options: CompileOptions | None) -> LoadedExecutable:
    """The executable of the bytes. Raises PJRT009 for bytes that are none, and what compiling raises."""
    try:
        manifest, members = container.unpack(data, "the executable")
        source = members[_SOURCE].decode()
        about = _about(manifest["pjrt"]["about"])
        own = _options(manifest["pjrt"]["options"])
    except (HeronError, ValueError, KeyError, TypeError) as error:
        why = error.why if isinstance(error, HeronError) else str(error)
        raise HeronError(
            "PJRT009", "these bytes are no executable heron has serialised", why=f"{data[:40]!r} …; {why}"
        ) from None
    options = options or own
    if _fits(manifest, client, options):
        with contextlib.suppress(HeronError):  # for a machine with other features
            program = made(manifest, members, "the executable")
            text = members[_SCHEDULED].decode()
            return LoadedExecutable(client, program, options, about, lambda: _parsed(text), lambda: source, data)
    return client.compile(source, options)


def _about(plain: dict[str, Any]) -> About:
    return About(**{**plain, "donated": tuple(plain["donated"]), "on_host": tuple(plain["on_host"])})


def _options(plain: dict[str, Any]) -> CompileOptions:
    assignment = tuple(tuple(replica) for replica in plain["device_assignment"])
    return CompileOptions(**{**plain, "device_assignment": assignment})


def _fits(manifest: dict[str, Any], client: Client, options: CompileOptions) -> bool:
    """Whether compiling the source here and now would give the same machine code."""
    return (
        "machine" in manifest
        and manifest["target"] == client.target.name
        and manifest["sources"] == _sources()
        and manifest["options"] == options.options().changed()
    )


def _parsed(text: str) -> Module:
    import heron

    return heron.parse(text)


@cache
def _sources() -> str:
    from heron.caching import sources

    return sources()
