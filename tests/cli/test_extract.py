"""`heron extract`: an instruction or a kernel as a program that gives what it gave in the whole one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from heron.cli import values
from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests import extracts
from tests.support import counting_loop, heron, program


def extracted(*arguments: object, out: Path) -> tuple[str, values.Values]:
    result = heron("extract", *arguments, "-o", out, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["program"] == (out / "program.hlo").read_text()
    return (out / "program.hlo").read_text(), values.read(str(out / "values.npz"))


def test_an_instruction_with_the_values_it_has(tmp_path: Path) -> None:
    """The product of two halves of a program is the whole: the output of one is the input of the next."""
    _, exp = extracted(program("softmax"), "%exp.1", "--random", "3", out=tmp_path / "exp")
    text, total = extracted(program("softmax"), "%reduce_sum.7", "--random", "3", out=tmp_path / "sum")
    np.testing.assert_array_equal(exp.outputs[0], total.inputs[0])
    assert "reduce(" in text and "constant(0)" in text
    folder = tmp_path / "sum"
    assert heron("run", folder / "program.hlo", "--expect", folder / "values.npz").code == 0


def test_an_instruction_of_a_loop_has_the_values_of_the_first_round(tmp_path: Path) -> None:
    path = tmp_path / "loop.hlo"
    path.write_text(counting_loop(5, 8))
    _, found = extracted(path, "%y", out=tmp_path / "out")
    np.testing.assert_array_equal(found.inputs[0], values.random(parse(path.read_text()), 0)[0])


def test_the_loop_itself(tmp_path: Path) -> None:
    path = tmp_path / "loop.hlo"
    path.write_text(counting_loop(5, 8))
    text, found = extracted(path, "loop", out=tmp_path / "out")
    module = parse(text, verify=True)
    assert len(module.computations) == 3
    for ours, theirs in zip(evaluate(module, *found.inputs), found.outputs, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_fusion_and_the_kernel_that_computes_it(tmp_path: Path) -> None:
    """By the kernel's name and by the instruction's at that stage: the same program."""
    text, _ = extracted(program("softmax"), "--kernel", "loop_divide_fusion_1", out=tmp_path / "a")
    again, _ = extracted(program("softmax"), "%loop_divide_fusion.1", "--stage", "scheduled", out=tmp_path / "b")
    assert text == again and "fusion(" in text


@pytest.mark.parametrize("workload", ["cumsum", "reductions", "gelu_bf16"])
def test_parts_drawn_from_real_programs(workload: str, tmp_path: Path) -> None:
    """`python -m tests.extracts` draws from all of them."""
    for n, part in enumerate(extracts.drawn(workload, seed=1)):
        assert extracts.fault(part, tmp_path / str(n)) is None, part.name


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "CLI076"),
        (["%a", "--kernel", "b"], "CLI076"),
        (["--kernel", "loop_divide_fusion_9"], "CLI076"),
        (["%exp.9"], "CLI039"),
        (["%exp.1", "--inputs", "a.npz", "--random", "1"], "CLI033"),
    ],
)
def test_bad_names(tmp_path: Path, arguments: list[str], code: str) -> None:
    result = heron("extract", program("softmax"), *arguments, "-o", tmp_path / "out")
    assert result.code == 2 and f"error[{code}]" in result.err
