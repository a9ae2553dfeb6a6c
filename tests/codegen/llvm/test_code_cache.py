"""Code kept in files: whole or not at all, by several processes, on disks that are full or may only be read."""

from __future__ import annotations

import errno
import multiprocessing
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from heron.codegen.llvm import code_cache
from heron.codegen.llvm.code_cache import CodeCache, Key, key

KEY = Key("object", "0" * 64, "x86_64-linux znver4", "+avx2", "level=3", "22.1.0", "0.1.0")


@pytest.fixture
def cache(tmp_path: Path) -> CodeCache:
    return CodeCache(tmp_path)


def the_file(cache: CodeCache) -> Path:
    (path,) = cache.folder.glob("*/*")
    return path


def test_what_is_put_is_there(cache: CodeCache) -> None:
    assert cache.get(KEY) is None
    assert cache.put(KEY, b"code\nof\x00bytes", "m")
    assert cache.get(KEY) == b"code\nof\x00bytes"
    (entry,) = cache.entries()
    size = entry.path.stat().st_size
    assert (entry.key, entry.label, entry.bytes) == (KEY, "m", 13)
    assert cache.clear() == (1, size)
    assert cache.entries() == [] and cache.get(KEY) is None


def test_fetch_makes_what_is_not_there(cache: CodeCache) -> None:
    assert cache.fetch(KEY, "m", lambda: b"made") == (b"made", False)
    assert cache.fetch(KEY, "m", lambda: b"other") == (b"made", True)


@pytest.mark.parametrize("field", [f for f in Key.__dataclass_fields__])
def test_every_field_makes_another_entry(cache: CodeCache, field: str) -> None:
    other = replace(KEY, **{field: "other"})
    cache.put(KEY, b"1", "m")
    assert other.digest != KEY.digest and cache.get(other) is None
    if field not in ("kind", "ir"):
        assert cache.why(other, "m") == f"{field}: '{getattr(KEY, field)}' then, 'other' now"


def test_why(cache: CodeCache) -> None:
    assert cache.why(KEY, "m") == "no module of that name was compiled"
    cache.put(KEY, b"1", "m")
    assert cache.why(KEY, "m") == "it is there"
    assert cache.why(replace(KEY, ir="1"), "m") == "its LLVM text is another"
    assert cache.why(replace(KEY, ir="1"), "n") == "no module of that name was compiled"
    cache.put(replace(KEY, ir="1", llvm="21", heron="0"), b"1", "m")
    assert cache.why(replace(KEY, ir="1"), "m") == "its LLVM text is another"


def test_keys_tell_texts_and_options_apart() -> None:
    a = key("ptx", "text", "sm_90", "", level=3, flush=False)
    assert a == key("ptx", "text", "sm_90", "", level=3, flush=False)
    assert len({a, key("ptx", "Text", "sm_90", "", level=3), key("ptx", "text", "sm_90", "", level=2)}) == 3


@pytest.mark.parametrize("cut", [0, 5, 20, 300, -1])
def test_a_file_cut_off_is_no_entry_and_goes(cache: CodeCache, cut: int) -> None:
    cache.put(KEY, b"x" * 100, "m")
    path = the_file(cache)
    path.write_bytes(path.read_bytes()[:cut])
    assert cache.get(KEY) is None and not path.exists()
    assert cache.fetch(KEY, "m", lambda: b"again") == (b"again", False) and cache.get(KEY) == b"again"


def test_changed_bytes_are_no_entry(cache: CodeCache) -> None:
    cache.put(KEY, b"x" * 100, "m")
    path = the_file(cache)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.get(KEY) in (None, b"x" * 100)  # a letter of the label may change
        path.write_bytes(whole)


def test_an_entry_under_another_name_is_none(cache: CodeCache) -> None:
    cache.put(KEY, b"1", "m")
    other = replace(KEY, ir="1")
    target = cache.folder / other.digest[:2] / f"{other.digest}.code"
    target.parent.mkdir(exist_ok=True)
    the_file(cache).rename(target)
    assert cache.get(other) is None


def test_a_full_disk_only_costs_the_entry(cache: CodeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.fdopen

    class Full:
        def __init__(self, handle: int, mode: str) -> None:
            self.stream = real(handle, mode)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.stream.close()

        def write(self, data: bytes) -> int:
            self.stream.write(data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(code_cache.os, "fdopen", Full)
    assert cache.fetch(KEY, "m", lambda: b"made") == (b"made", False)
    monkeypatch.undo()
    assert cache.get(KEY) is None and list(cache.folder.glob("*/*")) == []  # no half of it stays


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read(cache: CodeCache) -> None:
    cache.put(KEY, b"1", "m")
    for folder in (the_file(cache).parent, cache.folder):
        folder.chmod(0o500)
    try:
        assert cache.get(KEY) == b"1"
        assert not cache.put(replace(KEY, ir="1"), b"2", "m")
    finally:
        for folder in (cache.folder, the_file(cache).parent):
            folder.chmod(0o700)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = CodeCache(tmp_path / "file" / "code")
    assert cache.fetch(KEY, "m", lambda: b"made") == (b"made", False)
    assert cache.entries() == [] and cache.clear() == (0, 0)


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = CodeCache(tmp_path, limit=3000)
    keys = [replace(KEY, ir=str(n)) for n in range(3)]
    for n, k in enumerate(keys):
        cache.put(k, b"x" * 900, "m")
        os.utime(cache._path(k), (n, n))
    assert cache.get(keys[0]) is not None  # used just now
    code_cache._unseen[cache.folder] = 1 << 40
    cache.put(replace(KEY, ir="new"), b"x" * 900, "m")
    assert {e.key.ir for e in cache.entries()} == {"0", "new"}


def test_a_folder_is_looked_at_rarely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program has a cache object of its own: looking for each would take longer the more there are."""
    looks = list[Path]()
    shrink = CodeCache._shrink
    monkeypatch.setattr(CodeCache, "_shrink", lambda cache: (looks.append(cache.folder), shrink(cache)))
    for n in range(20):
        CodeCache(tmp_path).put(replace(KEY, ir=str(n)), b"x" * 1000, "m")
    assert len(looks) == 1
    code_cache._unseen.clear()  # another process, soon after
    CodeCache(tmp_path).put(replace(KEY, ir="later"), b"x", "m")
    assert len(looks) == 1
    CodeCache(tmp_path).put(replace(KEY, ir="large"), b"x" * (1 << 24), "m")
    assert len(looks) == 2
    code_cache._unseen.clear()
    os.utime(tmp_path / ".looked", (1, 1))
    CodeCache(tmp_path).put(replace(KEY, ir="much later"), b"x", "m")
    assert len(looks) == 3


def _work(folder: str, seed: int) -> int:
    """What a process finds wrong while others write the same entries, clear them, and cut files off."""
    cache, wrong = CodeCache(Path(folder), limit=20_000), 0
    for n in range(150):
        number = (n * 7 + seed) % 10
        code, _ = cache.fetch(replace(KEY, ir=str(number)), "m", lambda number=number: bytes([number]) * 3000)
        wrong += code != bytes([number]) * 3000
        if n % 40 == seed:
            cache.clear()
        code_cache._unseen[cache.folder] = 1 << 40
    return wrong


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
def test_processes_share_a_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.starmap(_work, [(str(tmp_path), 0), (str(tmp_path), 1)]) == [0, 0]
    assert not [p for p in tmp_path.glob("*/*") if p.suffix != ".code"]


def test_an_interrupted_write_leaves_nothing(cache: CodeCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.put(KEY, b"code", "m")
    monkeypatch.undo()
    assert not [p for p in cache.folder.rglob("*") if p.is_file()]
    assert cache.put(KEY, b"code", "m") and cache.get(KEY) == b"code"


def test_what_a_killed_process_had_begun_goes(cache: CodeCache) -> None:
    cache.put(KEY, b"code", "m")
    folder = the_file(cache).parent
    old, new = folder / ".begun-1", folder / ".begun-2"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert cache.get(KEY) == b"code"
    cache.clear()
    assert not old.exists() and new.exists()  # the other may be somebody's who is at it
