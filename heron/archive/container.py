"""The file itself: a zip with a manifest that has a checksum of every other member."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import heron
from heron import files
from heron.errors import HeronError

#: raised when what is in a file changes so that older versions of heron cannot read it, or newer ones older files
FORMAT = 1
MANIFEST = "manifest.json"
_START = b"PK\x03\x04"
_WHEN = (1980, 1, 1, 0, 0, 0)  # the same program is the same file


def is_archive(data: bytes) -> bool:
    """Whether a file that begins like this may be a saved program."""
    return data.startswith(_START)


def write(path: str | Path, facts: Mapping[str, Any], members: Mapping[str, bytes]) -> int:
    """Write a file; its bytes. Raises CLI012 and others of `files` when it cannot."""
    data = pack(facts, members)
    files.write_bytes(path, data)
    return len(data)


def pack(facts: Mapping[str, Any], members: Mapping[str, bytes], level: int = 6) -> bytes:
    """The bytes that `write` writes; ``level``: of compression, 0 for none."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    manifest = {"format": FORMAT, "heron": heron.__version__, **facts, "sha256": sums}
    out = io.BytesIO()
    how = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, data in {MANIFEST: json.dumps(manifest, indent=1).encode(), **members}.items():
            is_array = name.endswith(".npy")  # numbers hardly get smaller
            archive.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_STORED if is_array else how, level or None)
    return out.getvalue()


def read(path: str | Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the members.

    Raises CLI010 when there is no file, RUN050 when it is no saved program or is damaged, RUN051 for another format.
    """
    return unpack(files.read_bytes(path), path)


def unpack(data: bytes, path: str | Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The content of a file, from its bytes, as `read` returns it; ``path`` is for errors."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        manifest = json.loads(members.pop(MANIFEST))
        found, sums = manifest["format"], manifest["sha256"]
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, NotImplementedError, OSError) as error:
        raise _damaged(path, str(error) or type(error).__name__) from error
    except Exception as error:  # zlib's own error has no place to import it from on every platform
        raise _damaged(path, str(error)) from error
    if found != FORMAT:
        raise HeronError(
            "RUN051",
            f"'{path}' is in format {found}",
            why=f"heron {heron.__version__} reads format {FORMAT}, the file is of heron {manifest.get('heron')}",
            hint="save the program again with this version of heron",
        )
    for name, wanted in sums.items():
        if name not in members:
            raise _damaged(path, f"{name} is missing")
        if hashlib.sha256(members[name]).hexdigest() != wanted:
            raise _damaged(path, f"the checksum of {name} is another")
    return manifest, members


def _damaged(path: str | Path, why: str) -> HeronError:
    hint = "heron compile MODEL -o FILE.heron writes one"
    return HeronError("RUN050", f"'{path}' is not a saved program, or is damaged", why=why, hint=hint)


def array_bytes(array: np.ndarray) -> bytes:
    """An array's bytes in NumPy's format; types NumPy has no name for go as bytes."""
    out = io.BytesIO()
    np.save(out, np.ascontiguousarray(array).reshape(-1).view(np.uint8), allow_pickle=False)
    return out.getvalue()


def bytes_array(data: bytes) -> np.ndarray:
    """The bytes of an array that `array_bytes` wrote."""
    return np.load(io.BytesIO(data), allow_pickle=False)
