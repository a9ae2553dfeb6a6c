"""`heron fuzz`: a planted fault is found, reduced and filed once; the same seed tries the same programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from heron.fuzz.choices import RandomChoices
from heron.fuzz.everywhere import changed_everywhere
from heron.fuzz.excuses import excuse
from heron.fuzz.mutating import mutated
from heron.fuzz.searching import Hunt, trial
from heron.hlo.text import parse
from tests.reduce.test_edits import case_of
from tests.support import counting_loop, heron, program

PLANTS = Path(__file__).parents[1] / "reduce" / "plants"
TANH = "HloModule m\nENTRY e {\n  x = f32[6] parameter(0)\n  y = f32[6] negate(x)\n  ROOT z = f32[6] tanh(y)\n}\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "tanh.hlo").write_text(TANH)
    (folder / "broken.hlo").write_text("HloModule")
    return folder


def test_a_planted_fault_is_filed_once(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "found"
    words = ["fuzz", "--corpus", corpus, "--count", "12", "--load", PLANTS / "wrong_tanh.py", "-o", out, "--json"]
    result = heron(*words)
    assert result.code == 1, result.err
    document = json.loads(result.out)
    assert document["tried"] == 12 and document["again"] >= 1
    (finding,) = [f for f in document["findings"] if "tanh_is_its_operand" in f["culprit"]][:1]
    folder = Path(finding["folder"])
    assert finding["instructions"] == 2
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "inputs.npz",
        "original.hlo",
        "program.hlo",
        "run.sh",
        "state.json",
        "tried.jsonl",
    ]
    assert "tanh(" in (folder / "README.md").read_text()
    assert len(list(out.iterdir())) == len(document["findings"])


def test_programs_that_agree(tmp_path: Path) -> None:
    result = heron("fuzz", "--count", "2", "--ops", "3", "--jobs", "1", "-o", tmp_path / "out")
    assert result.code == 0 and "2 programs" in result.out and not (tmp_path / "out").exists()


def test_a_number_is_a_program() -> None:
    for plan in (Hunt(seed=5), Hunt(seed=5, corpus=(case_of(TANH), case_of(counting_loop(3, 4))))):
        assert trial(plan, 7).case.key == trial(plan, 7).case.key
        assert len({trial(plan, n).case.key for n in range(8)}) > 4


@pytest.mark.parametrize("name", ["softmax", "cond_switch", "heat_while"])
def test_changed_programs_are_valid(name: str) -> None:
    case = case_of(program(name).read_text())
    texts = set()
    for n in range(6):
        changed = mutated(case, RandomChoices(f"{name}/{n}"))
        parse(changed.text, verify=True)
        texts.add(changed.text)
    assert len(texts) > 3


def test_types_and_sizes_change_everywhere() -> None:
    """A program of one type and one size stays one of one type and one size; its inputs fit."""
    case = case_of(TANH)
    found = set()
    for n in range(60):
        changed = changed_everywhere(case, RandomChoices(f"tanh/{n}"))
        if changed is None:
            continue
        shapes = {str(s) for i in changed.module.instructions() for _, s in i.shape.leaves() if s.rank}
        assert len(shapes) == 1, changed.text
        (x,) = changed.inputs
        (p,) = changed.module.entry.parameters
        assert x.shape == p.shape.dims and x.dtype == p.shape.element_type.dtype
        found |= shapes
    assert len(found) > 8


def test_a_folder_without_programs(corpus: Path) -> None:
    (corpus / "tanh.hlo").write_text(TANH.replace("HloModule m", "HloModule m, replica_count=2"))
    result = heron("fuzz", "--corpus", corpus)
    assert result.code == 2 and "error[CLI078]" in result.err and "broken.hlo: TXT002" in result.err
    assert "tanh.hlo: for 2 devices" in result.err
    shutil.rmtree(corpus)
    assert "error[CLI078]" in heron("fuzz", "--corpus", corpus).err


@pytest.mark.parametrize("words", [["--time", "soon"], ["--count", "0"], ["--target", "sm90"], ["--against", "moon"]])
def test_bad_options(words: list[str]) -> None:
    assert heron("fuzz", *words).code == 2


def test_a_known_fault_of_xla_excuses_the_outputs_behind_it_alone() -> None:
    module = parse("""
HloModule m

larger {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b)
}

ENTRY e {
  x = f32[4,1] parameter(0)
  three = f32[] constant(3)
  r = f32[4] reduce(x, three), dimensions={1}, to_apply=larger
  s = f32[4] sine(r)
  t = f32[4,1] tanh(x)
  ROOT all = (f32[4], f32[4,1]) tuple(s, t)
}
""")
    assert "initial value" in (excuse(module, [0]) or "")
    assert excuse(module, [1]) is excuse(module, [0, 1]) is excuse(module, []) is None
