"""Compiled code that outlives the process: object code and PTX in files, each under what it was made from.

A `Key` names, field by field, everything code depends on, so that one can tell why two differ. Each entry is a file of
its own, written beside its place and renamed into it: processes may share a folder. Code that cannot be written (a full
disk, a folder that may only be read) is made again next time, and a file that is not whole is no entry and goes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from heron import files
from heron.codegen.llvm.optimize import binding
from heron.once import once
from heron.records import dataclass
from heron.trace import Decision

#: bytes all entries may take; beyond that those go that were not used for longest
LIMIT = 1 << 30
_MAGIC = b"heron-code-1\n"
_SUFFIX = ".code"
#: how files begin that are being written, and the seconds after which whoever wrote one has died
_BEGUN, _DEAD_AFTER = ".begun-", 3600.0
#: bytes written after which a process looks again whether a folder has grown too large, and seconds in which no other
#: process needs to: looking takes longer the more entries there are
_LOOK_AFTER, _LOOK_EVERY = 1 << 24, 600.0
#: the file that was touched when someone last looked
_LOOKED = ".looked"
#: bytes that this process has written to a folder since it looked
_unseen: dict[Path, int] = {}


@dataclass(frozen=True)
class Key:
    """The inputs of a piece of code; equal keys give equal code.

    ``kind``: ``object`` (host machine code), ``ptx`` or ``program`` (all of a CPU program). ``ir``: digest of the LLVM
    text, of the HLO text for a program. ``machine``: triple and
    processor. ``llvm``, ``heron``: versions.
    """

    kind: str
    ir: str
    machine: str
    features: str
    options: str
    llvm: str
    heron: str

    @cached_property
    def digest(self) -> str:
        """The name the entry is filed under."""
        return digest("\n".join(f"{name}={value}" for name, value in dataclasses.asdict(self).items()).encode())


def digest(data: bytes) -> str:
    """SHA-256 as text."""
    return hashlib.sha256(data).hexdigest()


def key(kind: str, text: str, machine: str, features: str, **options: object) -> Key:
    """The key of LLVM text compiled for a machine with those options."""
    from heron import __version__

    told = " ".join(f"{name}={value}" for name, value in options.items())
    version = ".".join(map(str, binding().llvm_version_info))
    return Key(kind, digest(text.encode()), machine, features, told, version, __version__)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the cache: its key, the module it was made for, its bytes, when it was last used (seconds)."""

    path: Path
    key: Key
    label: str
    bytes: int
    used: float


class CodeCache:
    """The entries in a folder. ``limit``: bytes they may take."""

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self.folder = folder if folder is not None else files.cache_folder() / "code"
        self.limit = limit

    def fetch(self, key: Key, label: str, make: Callable[[], bytes]) -> tuple[bytes, bool]:
        """The code of a key, and whether it was there; if not, what `make` gives is kept under that label."""
        kept = self.get(key)
        if kept is not None:
            return kept, True
        code = make()
        self.put(key, code, label)
        return code, False

    def get(self, key: Key) -> bytes | None:
        """The code, whole, or None. Being asked for keeps an entry young."""
        path = self._path(key)
        found = _read(path)
        if found is None:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return found[1]

    def put(self, key: Key, code: bytes, label: str) -> bool:
        """Keep code; whether it could be written."""
        header = {"key": dataclasses.asdict(key), "label": label, "bytes": len(code), "sha256": digest(code)}
        data = b"".join((_MAGIC, json.dumps(header).encode(), b"\n", code))
        if not _write(self._path(key), data):
            return False
        unseen = _unseen.get(self.folder, 0 if self._was_looked_at() else _LOOK_AFTER) + len(data)
        _unseen[self.folder] = unseen if unseen <= _LOOK_AFTER else 0
        if unseen > _LOOK_AFTER:
            self._shrink()
        return True

    def entries(self) -> list[Entry]:
        """All whole entries, those used last first."""
        found = []
        for path in self._files():
            with contextlib.suppress(OSError):
                used, head = path.stat().st_mtime, _read(path)
                if head is not None:
                    found.append(Entry(path, Key(**head[0]["key"]), head[0]["label"], len(head[1]), used))
        return sorted(found, key=lambda e: (-e.used, e.key.digest))

    def clear(self) -> tuple[int, int]:
        """Remove every entry; how many there were, and their bytes in files."""
        self._sweep()
        count = size = 0
        for path in self._files():
            with contextlib.suppress(OSError):
                bytes_ = path.stat().st_size
                path.unlink()
                count, size = count + 1, size + bytes_
        return count, size

    def why(self, key: Key, label: str) -> str:
        """A sentence: the code is there, or which fields differ from the nearest entry of a module of that name."""
        if _read(self._path(key)) is not None:
            return "it is there"
        others = [_differences(key, e.key) for e in self.entries() if e.label == label and e.key.kind == key.kind]
        if not others:
            return "no module of that name was compiled"
        return "; ".join(min(others, key=len))

    def _path(self, key: Key) -> Path:
        return self.folder / key.digest[:2] / f"{key.digest}{_SUFFIX}"

    def _files(self) -> Iterator[Path]:
        with contextlib.suppress(OSError):
            yield from sorted(self.folder.glob(f"*/*{_SUFFIX}"))

    def _sweep(self) -> None:
        """Remove what processes that were killed had begun to write."""
        for path in self.folder.glob(f"*/{_BEGUN}*"):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < time.time() - _DEAD_AFTER:
                    path.unlink()

    def _was_looked_at(self) -> bool:
        """Whether some process has just seen how large the folder is."""
        try:
            return (self.folder / _LOOKED).stat().st_mtime > time.time() - _LOOK_EVERY
        except OSError:
            return False

    def _shrink(self) -> None:
        """Remove entries, those not used for longest first, until all others are within the limit."""
        with contextlib.suppress(OSError):
            (self.folder / _LOOKED).touch()
        self._sweep()
        found = []
        for path in self._files():
            with contextlib.suppress(OSError):
                found.append((path.stat().st_mtime, path.stat().st_size, path))
        total = sum(size for _, size, _ in found)
        for _, size, path in sorted(found):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                total -= size


@once
def shared_cache() -> CodeCache:
    """The cache of code that programs share, which is kept whether or not programs are."""
    return CodeCache()


def cache_decision(label: str, cached: bool) -> Decision:
    """That the code of a module was kept from before, or was not."""
    reason = "its code was kept" if cached else "nothing was kept for its key: `heron cache why` says what differs"
    return Decision(cached, reason, "code-cache", label)


def _read(path: Path) -> tuple[dict[str, Any], bytes] | None:
    """Header and code of an entry; None when there is none. One that is not whole is removed."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head, _, code = data.removeprefix(_MAGIC).partition(b"\n")
    with contextlib.suppress(ValueError, KeyError, TypeError):
        header = json.loads(head)
        if data.startswith(_MAGIC) and header["bytes"] == len(code) and header["sha256"] == digest(code):
            if Key(**header["key"]).digest == path.stem:
                return header, code
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def _write(path: Path, data: bytes) -> bool:
    """Write the file, whole or not at all."""
    temporary = ""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=_BEGUN, dir=path.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        os.replace(temporary, path)
    except OSError:
        return False
    else:
        return True
    finally:  # an interrupt, too, leaves nothing behind
        if os.path.exists(temporary):
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _differences(wanted: Key, found: Key) -> list[str]:
    """The changes, field by field."""
    return [
        "its LLVM text is another" if f.name == "ir" else f"{f.name}: '{was}' then, '{now}' now"
        for f in dataclasses.fields(Key)
        if (now := getattr(wanted, f.name)) != (was := getattr(found, f.name))
    ]
