"""Reading and writing files with errors a user understands.

Writes go to a temporary file beside the target and are renamed into place, so a full disk or Ctrl-C never leaves half
a file under the real name.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from heron.errors import HeronError

_WHY = {
    errno.ENOENT: "there is no such file or folder",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EISDIR: "it is a folder",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EFBIG: "the file would be too large",
    errno.ENAMETOOLONG: "the name is too long",
}


#: no program's text is longer, but a device such as /dev/zero never ends
MAX_TEXT = 1 << 30
_CHUNK = 1 << 24


def cache_folder() -> Path:
    """The folder of files that can be made again: ``HERON_CACHE_DIR`` or the user's cache folder."""
    root = os.environ.get("HERON_CACHE_DIR")
    if root is not None:
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")) / "heron"


def read_text(path: str | Path) -> str:
    """The file's text (UTF-8). Raises CLI010 if it cannot be read, CLI011 if it is not text."""
    return decode(read_bytes(path), str(path))


def read_bytes(path: str | Path) -> bytes:
    """The file's content. Raises CLI010 when it cannot be read."""
    check_name("CLI010", "cannot read", path)
    try:
        with open(path, "rb") as stream:
            return read_stream(stream, str(path))
    except OSError as error:
        raise os_error("CLI010", f"cannot read '{path}'", error) from None


def read_stream(stream: IO[bytes], name: str) -> bytes:
    """The rest of `stream`. Raises CLI010 if it is longer than MAX_TEXT."""
    data = bytearray()
    while chunk := stream.read(_CHUNK):
        data += chunk
        if len(data) > MAX_TEXT:
            raise unreadable(name, f"it is longer than {MAX_TEXT:,} bytes")
    return bytes(data)


def unreadable(name: str, why: str) -> HeronError:
    """CLI010 for a reason that no system call reported."""
    return HeronError("CLI010", f"cannot read '{name}'", why=why)


def empty(name: str) -> HeronError:
    """CLI011 for an empty file."""
    hint = "a program begins with a line `HloModule NAME` or `module @NAME`"
    return HeronError("CLI011", f"'{name}' is empty", hint=hint)


def check_name(code: str, what: str, path: str | Path) -> None:
    """Raise `code` for a file name that no system call accepts."""
    if not str(path) or "\0" in str(path):
        why = "the name has a zero character" if str(path) else "the name is empty"
        raise HeronError(code, f"{what} {str(path)!r}", why=why)


def decode(data: bytes, name: str) -> str:
    """UTF-8 text of `data`, without a byte order mark. Raises CLI011 with the offset of the first invalid byte."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"byte {data[error.start]:#04x} at offset {error.start} is not UTF-8"
        raise HeronError("CLI011", f"'{name}' is not a text file", why=why, hint="HLO text is expected") from None
    if "\0" in text:
        why = f"a zero byte at offset {text.index(chr(0))}"
        raise HeronError("CLI011", f"'{name}' is not a text file", why=why, hint="HLO text is expected")
    return text


def write_text(path: str | Path, text: str) -> None:
    """Replace the file by `text`, whole or not at all. Raises CLI012."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, data: bytes) -> None:
    """Replace the file by `data`, whole or not at all. Raises CLI012 with the reason (disk full, no permission…)."""
    with replacing(path) as out:
        out.write(data)


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """A binary file to write to that takes the place of `path` once the block ends well. Raises CLI012."""
    check_name("CLI012", "cannot write", path)
    target = Path(path)
    temporary: str | None = None
    try:
        if target.exists() and not target.is_file():  # a device or pipe, e.g. /dev/stdout: nothing to rename
            with open(target, "wb") as out:
                yield out
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as out:
            yield out
        os.chmod(temporary, _mode(target))
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise os_error("CLI012", f"cannot write '{path}'", error) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def os_error(code: str, what: str, error: OSError) -> HeronError:
    """`error` as a HeronError that says why in plain words."""
    reason = _WHY.get(error.errno or 0) or error.strerror or str(error)
    return HeronError(code, what, why=reason)


def _mode(target: Path) -> int:
    """Permission bits for a new file: those of the file it replaces, else what the umask leaves."""
    try:
        return target.stat().st_mode & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
