"""``heron fmt --to proto``: text to HloModuleProto, which every verb reads as it reads text."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import heron, program


def test_there_and_back(tmp_path: Path) -> None:
    source, binary = program("softmax"), tmp_path / "softmax.pb"
    assert heron("fmt", source, "--to", "proto", "-o", binary).out == ""
    assert heron("fmt", binary).out == heron("fmt", source).out
    assert heron("fmt", "-", stdin=binary.read_bytes()).out == heron("fmt", source).out
    document = json.loads(heron("fmt", binary, "--to", "proto", "-o", tmp_path / "again.pb", "--json").out)
    assert document["module"] == "jit__lambda" and document["file"] == str(tmp_path / "again.pb")
    assert (tmp_path / "again.pb").read_bytes() == binary.read_bytes()


def test_refused(tmp_path: Path) -> None:
    result = heron("fmt", program("softmax"), "--to", "proto")
    assert result.code and "CLI002" in result.err and "-o" in result.err
    binary = tmp_path / "softmax.pb"
    heron("fmt", program("softmax"), "--to", "proto", "-o", binary)
    binary.write_bytes(binary.read_bytes()[:500])
    result = heron("fmt", binary)
    assert result.code and "PROTO001" in result.err and "cut off" in result.err
