"""Files are written whole or not at all, and every failure says why."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from heron import HeronError, files


def test_write_and_read(tmp_path: Path) -> None:
    files.write_text(tmp_path / "a.txt", "bäh\n")
    assert files.read_text(tmp_path / "a.txt") == "bäh\n"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_replacing_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o640)
    files.write_text(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o640)


def test_failure_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(HeronError) as caught, files.replacing(path) as out:
        out.write(b"half")
        raise OSError(errno.ENOSPC, "no space")
    assert caught.value.code == "CLI012"
    assert "the disk is full" in str(caught.value)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk() -> None:
    with pytest.raises(HeronError, match="the disk is full"):
        files.write_text("/dev/full", "x" * 100_000)


@pytest.mark.parametrize(
    ("data", "why"), [(b"\xff\xfeabc", "0xff at offset 0"), (b"Hlo\0Module", "zero byte at offset 3")]
)
def test_not_text(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "b").write_bytes(data)
    with pytest.raises(HeronError, match=why):
        files.read_text(tmp_path / "b")


def test_missing_file_and_folder(tmp_path: Path) -> None:
    with pytest.raises(HeronError, match="no such file"):
        files.read_text(tmp_path / "missing")
    with pytest.raises(HeronError, match="it is a folder"):
        files.read_text(tmp_path)
    with pytest.raises(HeronError, match="no such file or folder"):
        files.write_text(tmp_path / "no" / "a", "")


def test_byte_order_mark_is_no_text() -> None:
    assert files.decode(b"\xef\xbb\xbfHloModule", "x") == "HloModule"


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_impossible_names(name: str) -> None:
    with pytest.raises(HeronError, match="CLI010"):
        files.read_text(name)
    with pytest.raises(HeronError, match="CLI012"):
        files.write_text(name, "")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero here")
def test_endless_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_TEXT", 1 << 20)
    with pytest.raises(HeronError, match="longer than 1,048,576 bytes"):
        files.read_text("/dev/zero")
