"""Whole programs from the cache: the same bits, nothing compiled, and compiled again as soon as anything differs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heron
from heron import Options, caching
from heron.cli import values
from heron.codegen.llvm.code_cache import CodeCache
from heron.codegen.llvm.inline import called
from heron.codegen.llvm.jit import Jit, host
from heron.codegen.native import common_code
from heron.runtime.executable import Executable
from heron.trace import Trace
from tests.support import program

WAVE = "HloModule wave\n\nENTRY e {\n  x = f32[300] parameter(0)\n  s = f32[300] sine(x)\n  ROOT r = f32[300] add(s, x)\n}\n"
KEPT = Options(cache=True)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERON_CACHE_DIR", str(tmp_path))
    return tmp_path / "code"


def is_kept(made: Executable) -> bool:
    return any("from the cache" in note for note in made.trace.notes)


def files_of_programs() -> list[Path]:
    return [e.path for e in CodeCache().entries() if e.key.kind == "program"]


@pytest.mark.parametrize(
    "name",
    ["softmax", "matmul_f32", "fft", "cholesky_solve", "heat_while", "cond_switch", "sort_topk", "conv_variants"],
)
def test_a_program_read_back_gives_the_same_bits(name: str) -> None:
    text = program(name).read_text()
    first, second = (heron.compile(heron.parse(text), options=KEPT) for _ in range(2))
    assert not is_kept(first) and is_kept(second)
    inputs = values.random(heron.parse(text), 0)
    for _ in range(3):
        assert [a.tobytes() for a in first.run(inputs)] == [a.tobytes() for a in second.run(inputs)]
    assert first.memory == second.memory and first.name == second.name
    assert [k.name for k in first.kernels] == [k.name for k in second.kernels]


def test_what_differs_is_compiled() -> None:
    heron.compile(heron.parse(WAVE), options=KEPT)
    assert is_kept(heron.compile(heron.parse(WAVE), options=KEPT))
    assert not is_kept(heron.compile(heron.parse(WAVE.replace("sine", "cosine")), options=KEPT))
    assert not is_kept(heron.compile(heron.parse(WAVE), options=KEPT.replace(opt_level=1)))
    assert not is_kept(heron.compile(heron.parse(WAVE), options=KEPT.replace(threads=7)))
    assert not is_kept(heron.compile(heron.parse(WAVE)))
    assert len(files_of_programs()) == 4


def test_another_version_of_the_compiler_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    heron.compile(heron.parse(WAVE), options=KEPT)
    monkeypatch.setattr(caching, "sources", lambda: "other")
    assert not is_kept(heron.compile(heron.parse(WAVE), options=KEPT))


def test_large_constants_count() -> None:
    texts = [
        WAVE.replace("s, x", "s, c").replace(
            "  ROOT", f"  c = f32[300] constant({{{', '.join(map(str, [n] * 300))}}})\n  ROOT"
        )
        for n in (1, 2)
    ]
    x = np.zeros(300, np.float32)
    assert [heron.compile(heron.parse(t), options=KEPT)(x)[0] for t in texts] == [1, 2]
    assert [heron.compile(heron.parse(t), options=KEPT)(x)[0] for t in texts] == [1, 2]


def test_who_wants_a_record_gets_one() -> None:
    heron.compile(heron.parse(WAVE), options=KEPT)
    watched = heron.compile(heron.parse(WAVE), options=KEPT, trace=Trace())
    assert not is_kept(watched) and watched.trace.decisions
    kept = heron.compile(heron.parse(WAVE), options=KEPT)
    assert "sine" in kept.stage("fused") and "define" in kept.stage("llvm")


def test_a_damaged_entry_is_no_entry() -> None:
    heron.compile(heron.parse(WAVE), options=KEPT)
    (path,) = files_of_programs()
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert not is_kept(heron.compile(heron.parse(WAVE), options=KEPT))
    assert is_kept(heron.compile(heron.parse(WAVE), options=KEPT))


def test_errors_are_the_same() -> None:
    for _ in range(2):
        made = heron.compile(heron.parse(WAVE), options=KEPT)
        with pytest.raises(heron.HeronError, match="takes 1 arrays, 2 given"):
            made(np.zeros(300, np.float32), np.zeros(300, np.float32))


def test_dynamic_sizes() -> None:
    text = "HloModule d\n\nENTRY e {\n  x = f32[<=8] parameter(0)\n  ROOT r = f32[<=8] negate(x)\n}\n"
    for n in (8, 3):
        made = heron.compile(heron.parse(text), options=KEPT)
        assert np.array_equal(made(np.ones(n, np.float32)), -np.ones(n, np.float32))


def test_code_that_programs_share_is_kept() -> None:
    text = "define i64 @shared_by_all() {\n  ret i64 7\n}\n"
    made = [common_code.address_of("shared_by_all", lambda: text, n, cache=CodeCache()) for n in range(2)]
    assert made[0] != made[1]  # another form is linked by itself, from the same file
    assert [e.label for e in CodeCache().entries()] == ["shared_by_all"]


_FRESH = f"""import sys, numpy, heron
program = heron.compile(heron.parse({WAVE!r}), options=heron.Options(cache=True))
program(numpy.zeros(300, numpy.float32))
print("xdsl" in sys.modules, "heron.backends.compiler" in sys.modules)
print(program.stage("scheduled"))
"""


def test_a_program_read_back_loads_no_compiler_until_a_stage_is_asked_for() -> None:
    first, second = (
        subprocess.run([sys.executable, "-c", _FRESH], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first.startswith("True True\n") and second.startswith("False False\n")
    assert first.partition("\n")[2] == second.partition("\n")[2]


def test_functions_that_programs_call_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has compiled none finds them, without the option."""
    folder = CodeCache()
    monkeypatch.setattr(called, "shared_cache", lambda: folder)
    made = []
    for _ in range(2):
        monkeypatch.setattr(called, "_CODE", {})
        made.append(called.compiled("heron.tanh.f32", host().width, Jit()))
    assert [o.cached for o in made] == [False, True] and made[0].code == made[1].code
    assert [e.label for e in folder.entries()] == ["heron.tanh.f32"]


def test_a_file_in_place_of_the_folder_keeps_nothing() -> None:
    """`HERON_CACHE_DIR=/dev/null` is how nothing is kept."""
    text = "define i64 @seven() {\n  ret i64 7\n}\n"
    none = CodeCache(Path("/dev/null/code"))
    assert [Jit(cache=none).compile(text).cached for _ in range(2)] == [False, False]
    assert none.entries() == [] and none.clear() == (0, 0)
