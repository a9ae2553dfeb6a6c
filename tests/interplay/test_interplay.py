"""Some joint programs, and the parts of the search itself; ``python -m tests.interplay`` runs thousands."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse

pytest.importorskip("jax")

from tests.interplay.joins import Branch, Fed, Leaf, Loop, Mapped, Shared, Side, mixed  # noqa: E402
from tests.interplay.judging import Judge  # noqa: E402
from tests.interplay.library import families, library  # noqa: E402
from tests.interplay.program import Program, draw, read  # noqa: E402
from tests.interplay.reducing import Sign, Task, by_fragments, by_instructions  # noqa: E402
from tests.interplay.running import Job, Outcome, run  # noqa: E402

#: series of programs that run by default
SEED, CHUNKS, CHUNK = 1, 8, 20
#: the sizes they are drawn at
SIZES = (1, 2, 3, 5, 8)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_joint_programs(chunk: int) -> None:
    for number in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        program = draw(SEED, number, most=3, sizes=SIZES)
        outcome = run(Job(program, ("eval", "cpu", "sim:sm_90"), number))
        assert "jax" not in outcome.kinds, f"{program}\n{outcome.texts}"
        assert not outcome.faults, f"{outcome.kinds}\n{outcome.texts}\npython -m tests.interplay --program {program}"


def test_large_joint_programs() -> None:
    """Those whose kernels are shared among threads, and whose sums are cut into parts."""
    for number in range(2):
        program = draw(2, number, most=2, large=True)
        assert all(leaf.n > 1000 for leaf in program.node.leaves)
        outcome = run(Job(program, ("cpu",), number))
        assert outcome.kinds == {"cpu": "right"}, f"{outcome.texts}\npython -m tests.interplay --program {program}"


def test_joint_programs_over_devices() -> None:
    """Side by side, feeding each other, in branches and a scan."""
    for number in range(6):
        program = draw(2, number, most=3, sizes=(3, 8), devices=8)
        text = program.lowered()
        assert "sdy.sharding_constraint" in text and "num_partitions = 1 :" not in text, program
        outcome = run(Job(program, ("cpu",), number))
        assert outcome.kinds == {"cpu": "right"}, f"{outcome.texts}\npython -m tests.interplay --program {program}"


def test_library() -> None:
    """There are fragments of every kind, their inputs can be drawn, and names are unique."""
    assert len(library()) >= 400 and len(families()) >= 12
    rng = np.random.default_rng(0)
    for fragment in library().values():
        for n in (fragment.sizes[0], fragment.sizes[-1]):
            for spec in fragment.inputs(n):
                assert spec.draw(rng).shape == spec.dims, fragment.name


def test_programs_are_drawn_again() -> None:
    for number in range(50):
        program = draw(3, number)
        assert read(repr(program)) == program == draw(3, number)
        for one, other in zip(program.inputs(), program.inputs(), strict=True):
            np.testing.assert_array_equal(one, other)


def test_programs_of_a_group_share_their_parts() -> None:
    """Eight in a row join six leaves at most, in one mode, each in its own way."""
    for first in (0, 8, 16):
        programs = [draw(3, number, group=8) for number in range(first, first + 8)]
        parts = {(leaf, p.wide) for p in programs for leaf in p.node.leaves}
        assert len(parts) <= 6 < sum(len(p.node.leaves) for p in programs)
        assert len({repr(p.node) for p in programs}) > 6


@pytest.mark.parametrize("type_", [np.float32, np.int32, np.bool_, np.complex64, np.uint8])
@pytest.mark.parametrize("fed", [np.ones((2, 3), np.float32), np.arange(5), np.array(3 + 4j), np.array([True])])
def test_mixing_keeps_type_and_shape(type_: type, fed: np.ndarray) -> None:
    base = np.arange(6).reshape(2, 3).astype(type_)
    found = mixed(np, base, fed)
    assert found.dtype == base.dtype and found.shape == base.shape


_NODES = [
    Side((Leaf("sort", 5), Leaf("cumsum", 3))),
    Fed((Leaf("sort", 5), Leaf("fft", 3), Leaf("cholesky", 3))),
    Shared((Leaf("cumsum", 3), Leaf("matmul_same", 3), Leaf("sum_rows", 3))),
    Branch((Leaf("sort", 5), Leaf("add", 2))),
    Branch((Leaf("sort", 5), Leaf("add", 2), Leaf("uniform", 3))),
    Mapped(Side((Leaf("sort", 5), Leaf("cond", 2))), 3),
    *[Loop(Fed((Leaf("cumsum", 5), Leaf("tanh", 4))), 3, form) for form in ("while", "fori", "scan", "reverse")],
]


@pytest.mark.parametrize("node", _NODES, ids=lambda n: type(n).__name__)
def test_both_meanings_of_joins_agree(node: Side) -> None:
    program = Program(node, 5)
    judge = Judge(program, program.lowered(), program.inputs())
    assert judge.verdict(judge.whole).kind == "right"


def test_a_wrong_value_is_found() -> None:
    program = Program(Side((Leaf("cumsum", 5), Leaf("sort", 3))), 5)
    judge = Judge(program, program.lowered(), program.inputs())
    outputs = [np.array(o) for o in judge.reference]
    assert judge.verdict(outputs).kind == "right"
    for k, o in enumerate(outputs):
        o.reshape(-1)[0] += 0.01
        verdict = judge.verdict(outputs)
        assert (verdict.kind, verdict.output) == ("wrong", k)
        o.reshape(-1)[0] -= 0.01


def test_reducing_leaves_what_shows_the_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of six fragments in nested joins the one is left that is at fault."""
    nested = Loop(Side((Leaf("fft", 24), Branch((Leaf("sort", 16), Leaf("cumsum", 8))))), 3, "scan")
    program = Program(Fed((Leaf("add", 7), Mapped(nested, 2), Leaf("tanh", 3))), 5, True)

    def at_once(function: object, jobs: list[Job], processes: int, seconds: float) -> object:
        for k, job in enumerate(jobs):
            wrong = any(leaf.name == "sort" for leaf in job.program.node.leaves)
            yield k, Outcome({"cpu": "wrong" if wrong else "right"})

    monkeypatch.setattr("tests.interplay.reducing.results", at_once)
    assert by_fragments(program, Sign("cpu", "wrong"), 1, 60) == Program(Leaf("sort", 2), 5)


def test_reducing_by_instructions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of a program is the instruction at fault, with the value it had."""

    def faulty(target: str, module: Module, inputs: list[np.ndarray], donated: bool = False) -> list[np.ndarray]:
        wrong = any(i.opcode == "sort" for i in module.instructions())
        return [o + wrong for o in evaluate(module, *inputs)]

    monkeypatch.setattr("tests.interplay.reducing.computed", faulty)
    program = Program(Fed((Leaf("cumsum", 7), Leaf("sort", 8), Leaf("tanh", 8))), 5)
    told = by_instructions(Task(program, Sign("cpu", "wrong"), tmp_path / "found", 60))
    module = parse((tmp_path / "found.hlo").read_text())
    assert [i.opcode for i in module.entry.instructions if i.opcode != "parameter"] == ["sort"]
    assert len(np.load(tmp_path / "found.npz").files) == len(module.entry.parameters) and "found.hlo" in told
