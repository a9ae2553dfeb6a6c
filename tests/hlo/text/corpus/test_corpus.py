"""``python -m tests.hlo.text.corpus`` on a few texts, one of each kind of finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.hlo.text.corpus.__main__ import main

TEXTS = {
    "right.hlo": "HloModule m\nENTRY e { p = f32[3] parameter(0)\n ROOT n = f32[3] exponential(p) }",
    "refused.hlo": "HloModule m\nENTRY e { p = f32[3] parameter(0)\n ROOT n = f32[3] exponentail(p) }",
    "unverified.txt": "HloModule m\nENTRY e { p = f32[3] parameter(0)\n ROOT n = f32[4] negate(p) }",
    "differs.hlo": "HloModule m\nENTRY e { ROOT z = f32[2] constant({-0, 1}) }",
    "no_module.md": "",
}


def test_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("jaxlib")
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    found = tmp_path / "found.jsonl"
    assert main([str(folder), "--run", "evaluator", "--run", "cpu", "--limit", "120", "--json", str(found)]) == 0
    answers = {Path(a["file"]).name: a for a in map(json.loads, found.read_text().splitlines())}
    assert sorted(answers) == sorted(name for name in TEXTS if not name.endswith(".md"))
    stages = {name: {s: f["status"] for s, f in a.items() if isinstance(f, dict)} for name, a in answers.items()}
    assert stages["right.hlo"] == dict.fromkeys(("parse", "verify", "print", "again", "evaluator", "cpu"), "ok")
    assert stages["unverified.txt"] == {"parse": "ok", "verify": "refused", "print": "ok", "again": "ok"}
    assert stages["differs.hlo"]["print"] == "differs" and stages["differs.hlo"]["again"] == "ok"
    assert answers["refused.hlo"]["xla"] == "refused" and stages["refused.hlo"] == {"parse": "refused"}
    shown = capsys.readouterr().out
    assert "1 × verify refused HLO108" in shown and "XLA refuses 1 more texts" in shown
