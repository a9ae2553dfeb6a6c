"""Saved programs: they come back and give the same, wherever they may run; what cannot be read says why."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heron
from heron import archive
from heron.archive import container
from heron.archive.plain import decode, encode
from heron.cli import compare, values
from heron.errors import HeronError
from heron.options import Options
from heron.targets import libcuda
from tests.rehearsal.compiling import learn, rehearsed
from tests.runtime.cuda.programs import DIAMOND, LOOPS, RANDOM, SUM, close, matrices, parse
from tests.support import golden_values, program
from tests.support import heron as run

PROGRAMS = "softmax seed_int8xbf16 attention_f32 heat_while cond_switch transformer_block linalg_lapack sort_topk uniform dtype_zoo".split()


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_come_back(name: str, target: str, tmp_path: Path) -> None:
    platform = "cpu" if target == "cpu" else "cuda"
    module = heron.parse(program(name, platform=platform).read_text())
    made = heron.compile(module, target=target)
    archive.save(made, tmp_path / "app.heron")
    back = heron.load(tmp_path / "app.heron")
    assert (back.name, back.target, back.memory) == (made.name, made.target, made.memory)
    assert back.stage("scheduled") == made.stage("scheduled")
    held = values.read(str(golden_values(name)))
    arrays = values.fit(held.inputs, module, held.name)
    for _ in range(2):
        assert all(r.ok for r in compare.compare_all(back.run(arrays), held.outputs))


def test_a_program_for_a_gpu_is_saved_without_one(tmp_path: Path) -> None:
    module, arrays = parse(DIAMOND), matrices()
    made = heron.compile(module, target="sm_90")
    archive.save(made, tmp_path / "app.heron")
    back = heron.load(tmp_path / "app.heron")
    assert back.program == made.program and ".target sm_90" in back.stage("ptx") and "graph of" in back.stage("graph")
    with rehearsed() as recorder:
        learn(back, module, recorder, Options())
        close(back(*arrays), module, *arrays)
    with rehearsed(capability=(8, 0)), pytest.raises(HeronError, match="RUN041"):
        heron.load(tmp_path / "app.heron")(*arrays)


def test_code_of_block_kernels_is_for_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine code is in the file; where there is no GPU, or another one, the error says so."""
    module = parse(program("matmul_bf16_gelu", platform="cuda").read_text())
    archive.save(heron.compile(module, target="sm_90"), tmp_path / "app.heron")
    arrays = values.random(module, 0)
    back = heron.load(tmp_path / "app.heron")
    assert all(i.code.startswith(b"\x7fELF") and i.sm == "sm_90a" for i in back.program.images)
    with rehearsed() as recorder:
        learn(back, module, recorder, Options())
        back.run(arrays)
    with rehearsed(capability=(10, 0), name="B200"), pytest.raises(HeronError, match="RUN041") as caught:
        heron.load(tmp_path / "app.heron").run(arrays)
    assert "B200" in str(caught.value) and "sm_90" in str(caught.value)
    monkeypatch.setattr(libcuda, "library", lambda: None)
    with pytest.raises(HeronError, match="RUN030") as caught:
        heron.load(tmp_path / "app.heron").run(arrays)
    assert "no CUDA driver is installed" in str(caught.value)


def test_a_later_gpu_compiles_the_ptx(tmp_path: Path) -> None:
    module, arrays = parse(DIAMOND), matrices()
    archive.save(heron.compile(module, target="sm_80"), tmp_path / "app.heron")
    back = heron.load(tmp_path / "app.heron")
    with rehearsed(capability=(9, 0)) as recorder:
        learn(back, module, recorder, Options())
        close(back(*arrays), module, *arrays)


@pytest.mark.parametrize("text", [SUM, LOOPS, RANDOM], ids=["sum", "loops", "random"])
def test_the_same_program_is_the_same_file(text: str, tmp_path: Path) -> None:
    for n in range(2):
        archive.save(heron.compile(parse(text)), tmp_path / f"{n}.heron")
    assert (tmp_path / "0.heron").read_bytes() == (tmp_path / "1.heron").read_bytes()


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "app.heron"
    archive.save(heron.compile(parse(SUM)), path)
    return path


def rewrite(path: Path, change: Any) -> None:
    """Change the manifest of a file."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(members[container.MANIFEST])
    change(manifest, members)
    members[container.MANIFEST] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)


def test_damage_is_seen(saved: Path) -> None:
    whole = saved.read_bytes()
    generator = np.random.default_rng(0)
    x, y = matrices(shape=(1000,))
    for _ in range(60):
        data = bytearray(whole)
        data[int(generator.integers(4, len(data)))] ^= int(generator.integers(1, 256))
        saved.write_bytes(data)
        try:
            np.testing.assert_array_equal(heron.load(saved)(x, y), x + y)  # a byte nobody reads
        except HeronError as error:
            assert error.code in ("RUN050", "RUN051")
    for end in (5, 100, len(whole) - 1):
        saved.write_bytes(whole[:end])
        with pytest.raises(HeronError, match="RUN050"):
            heron.load(saved)


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (lambda m, _: m.update(format=99), "RUN051", "reads format 1"),
        (lambda m, _: m["machine"].update(features="+avx9000"), "RUN051", "without avx9000"),
        (lambda m, _: m["machine"].update(triple="aarch64-linux"), "RUN051", "for another machine: aarch64-linux"),
        (lambda m, _: m["machine"].update(kind="abacus"), "RUN050", "abacus"),
        (lambda m, _: m.pop("signature"), "RUN050", "signature"),
        (lambda m, members: members.pop("plan.json"), "RUN050", "plan.json is missing"),
        (lambda m, members: members.update({"plan.json": b"{}"}), "RUN050", "checksum of plan.json"),
    ],
)
def test_files_that_will_not_do(saved: Path, change: Any, code: str, says: str) -> None:
    rewrite(saved, change)
    with pytest.raises(HeronError, match=code) as caught:
        heron.load(saved)
    assert says in str(caught.value)


def test_products_are_for_the_vectors_they_were_compiled_for(tmp_path: Path) -> None:
    """A machine with wider vectors would cut the product in another way than the program has it."""
    path = tmp_path / "p.heron"
    archive.save(heron.compile(heron.parse(program("matmul_f32").read_text())), path)

    def narrow(manifest: Any, _: Any) -> None:
        features = manifest["machine"]["features"].split(",")
        manifest["machine"]["features"] = ",".join(f for f in features if not f.startswith("+avx"))

    rewrite(path, narrow)
    with pytest.raises(HeronError, match="RUN051") as caught:
        heron.load(path)
    assert "other vectors" in str(caught.value)


def test_a_loaded_program_has_only_some_stages(saved: Path) -> None:
    back = heron.load(saved)
    with pytest.raises(HeronError, match="RUN053"):
        back.stage("llvm")
    with pytest.raises(HeronError, match="RUN052"):
        archive.save(back, saved)


def test_the_plan_holds_only_known_data() -> None:
    thunks = heron.compile(parse(LOOPS), target="sm_90").program.thunks
    assert decode(json.loads(json.dumps(encode(thunks)))) == thunks
    with pytest.raises(HeronError, match="RUN052"):
        encode(object())
    for bad in ({"is": "os:stat_result"}, {"is": "heron.files:read_bytes"}, {"is": "heron.nothing:X"}, {"odd": 1}):
        with pytest.raises(HeronError, match="RUN050"):
            decode(bad)


def test_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "app.heron"
    made = run("compile", program("softmax"), "-o", path)
    assert made.code == 0 and path.exists()
    ran = run("run", path, "--expect", golden_values("softmax"))
    assert ran.code == 0 and "loaded in" in ran.out
    shown = run("compile", program("heat_while"), "--target", "sm_90", "--to", "graph")
    assert "while #" in shown.out and "after n0" in shown.out
    assert run("compile", program("softmax"), "--to", "graph").code == 2
