"""Dimensions without a bound are carried; what needs sizes refuses them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heron.cli.main import invoke
from heron.compiling import compile
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.proto import from_proto, to_proto
from heron.hlo.text import parse, print_module
from heron.hlo.tools.compare import difference
from heron.hlo.verifier import problems
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

TEXT = """HloModule m, entry_computation_layout={(f32[?,3]{1,0})->f32[?,3]{1,0}}

ENTRY %e (x: f32[?,3]) -> f32[?,3] {
  %x = f32[?,3]{1,0} parameter(0)
  ROOT %y = f32[?,3]{1,0} add(%x, %x)
}

"""


def test_carried() -> None:
    module = parse(TEXT, verify=True)
    assert print_module(module) == TEXT
    for same in (module.clone(), from_proto(to_proto(module), verify=True)):
        assert difference(same, module, names=True) is None and print_module(same) == TEXT
    assert module.entry.root.shape is module.entry.parameters[0].shape


def test_other_rules_still_hold() -> None:
    text = TEXT.replace("ROOT %y", "%z = f32[4] iota(), iota_dimension=1\n  ROOT %y")
    assert [p.instruction.name for p in problems(parse(text)) if p.instruction] == ["z"]


NEEDS: dict[str, Callable[[Module], Any]] = {
    "evaluate": lambda m: evaluate(m, np.ones((2, 3), np.float32)),
    "compile": lambda m: compile(m, "cpu"),
    "pass": lambda m: PassContext().run_pass(registry.get("cse"), m),
}


@pytest.mark.parametrize("name", NEEDS)
def test_refused(name: str) -> None:
    with pytest.raises(HeronError) as caught:
        NEEDS[name](parse(TEXT))
    assert caught.value.code == "HLO031" and "f32[?,3]" in str(caught.value.where)


@pytest.mark.parametrize(("verb", "code"), [("fmt", 0), ("verify", 0), ("eval", 2), ("opt", 2), ("indexing", 2)])
def test_command_line(verb: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hlo"
    path.write_text(TEXT)
    assert invoke([verb, str(path), *(["-p", "cse"] if verb == "opt" else [])]) == code
    assert ("HLO031" in capsys.readouterr().err) == bool(code)
