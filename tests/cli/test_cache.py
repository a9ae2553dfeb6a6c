"""``heron cache``, and compiles that keep their code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heron as library
from heron import Options
from heron.codegen.llvm import code_cache, libdevice
from heron.codegen.llvm.code_cache import CodeCache
from heron.compiling import compile
from heron.trace import Decision, Trace
from tests.support import heron, program


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "code"


def decisions(target: str = "cpu", **options: object) -> list[Decision]:
    module = library.parse(program("softmax").read_text())
    made = compile(module, target, Options(cache=True).replace(**options), Trace())
    return [d for d in made.trace.decisions if d.rule == "code-cache"]


def test_a_second_compile_finds_the_code() -> None:
    """That of the program, and that of the exponential it calls."""
    assert [bool(d) for d in decisions()] == [False, False]
    assert [bool(d) for d in decisions()] == [True, True]
    assert [bool(d) for d in decisions(opt_level=2)] == [False, False]
    assert any(decisions(threads=1))  # the program may be another one where threads share work


def test_nothing_is_kept_by_default(folder: Path) -> None:
    made = compile(library.parse(program("softmax").read_text()), "cpu")
    assert not folder.exists() and not [d for d in made.trace.decisions if d.rule == "code-cache"]


def test_values_are_the_same_bits() -> None:
    text = program("transformer_block").read_text()
    first, second = (compile(library.parse(text), "cpu", Options(cache=True), Trace()) for _ in range(2))
    assert len([d for d in second.trace.decisions if d.rule == "code-cache" and d]) > 1
    rng = np.random.default_rng(0)
    shapes = first.signature.parameters
    arrays = [rng.uniform(-1, 1, s.dims).astype(s.element_type.dtype) for s in shapes]
    a, b = (np.asarray(made(*arrays)) for made in (first, second))
    assert a.tobytes() == b.tobytes()


@pytest.mark.skipif(not any(p.is_file() for p in libdevice.candidates()), reason="libdevice is not installed")
def test_ptx_is_kept() -> None:
    first, second = decisions("sm_90"), decisions("sm_90")
    assert [bool(d) for d in first + second] == [False, True]
    assert [bool(d) for d in decisions("sm_80")] == [False]
    assert [bool(d) for d in decisions("sm_90", math="fast")] == [False]


def test_ls_why_clear(folder: Path) -> None:
    source = program("softmax")
    assert "0 entries" in heron("cache", "ls").out
    why = heron("cache", "why", source)
    assert why.code == 1 and "no module of that name was compiled" in why.out
    assert heron("run", source, "--random", "0", "-O", "cache=true").code == 0
    assert str(folder) in heron("cache", "ls").out.replace("\n", "")
    entries = json.loads(heron("cache", "ls", "--json").out)["entries"]
    assert len(entries) == 2 and all(e["kind"] == "object" and e["bytes"] > 500 for e in entries)
    why = heron("cache", "why", source)
    assert why.code == 0 and "it is there" in why.out
    others = json.loads(heron("cache", "why", source, "-O", "opt_level=1", "--json").out)
    assert len(others) == 2 and all(not o["kept"] and "options: 'level=3" in o["why"] for o in others)
    assert "removed 2 entries" in heron("cache", "clear").out
    assert json.loads(heron("cache", "clear", "--json").out) == {"removed": 0, "bytes": 0}


def test_another_llvm_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    decisions()
    real = code_cache.key

    def newer(*args: str, **options: object) -> code_cache.Key:
        import dataclasses

        return dataclasses.replace(real(*args, **options), llvm="99.0.0")

    monkeypatch.setattr("heron.codegen.llvm.jit.key", newer)
    found = json.loads(heron("cache", "why", program("softmax"), "--json").out)
    assert found and all("99.0.0" in f["why"] and f["why"].startswith("llvm: ") for f in found)


def test_two_processes_at_once(folder: Path) -> None:
    code = "import sys\nfrom heron.cli.main import invoke\nsys.exit(invoke(sys.argv[1:]))\n"
    command = [sys.executable, "-c", code, "run", str(program("layernorm")), "--random", "0", "-O", "cache=true"]
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL, env=os.environ.copy()) for _ in range(2)]
    assert [p.wait() for p in running] == [0, 0]
    cache = CodeCache(folder)
    assert cache.entries() and len(cache.entries()) == len(list(folder.glob("*/*")))
