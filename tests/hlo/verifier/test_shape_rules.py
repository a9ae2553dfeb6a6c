"""Every refusal of every shape rule is met by some case."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import heron.hlo.ops as declarations
from heron.errors import HeronError
from heron.hlo.ir import op as ops
from heron.hlo.ir.instruction import make
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import C64, F32, U64
from heron.hlo.ir.window import ConvDims, WindowDim
from heron.hlo.text import parse
from heron.hlo.verifier import problems
from tests.hlo.ops.test_shape_rules import REJECTED, f32, parameter
from tests.hlo.verifier.refusals import PAIRS, Pair, module

#: what the parser would not let through
BUILT = [
    ("parameter", [], {"number": -1}, "parameter number -1 is negative"),
    ("fft", [f32(C64, 4)], {"fft_type": "DFT", "fft_length": (4,)}, "fft_type=DFT is none of"),
    (
        "triangular-solve",
        [f32(F32, 2, 2)] * 2,
        {"left_side": True, "transpose_a": "FLIP"},
        "transpose_a=FLIP is none of",
    ),
    ("rng", [f32(F32)] * 2, {"distribution": "rng_poisson"}, "distribution=rng_poisson"),
    ("rng-bit-generator", [f32(U64, 2)], {"algorithm": "rng_dice"}, "algorithm=rng_dice"),
    (
        "convolution",
        [f32(F32, 2, 9, 4), f32(F32, 3, 4, 5)],
        {"window": (WindowDim(3),), "dim_labels": ConvDims(0, 2, (1,), 1, 2, (), 0, 2, (1,))},
        "other numbers of spatial dimensions",
    ),
]
FOLDER = Path(declarations.__file__).parent


def refusals() -> set[tuple[str, int]]:
    """File and line of every ``reject(...)`` in the declarations of ops."""
    found: set[tuple[str, int]] = set()
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reject":
                found.add((path.name, node.lineno))
    return found


def _refused() -> Iterator[None]:
    """Everything the cases make the shape rules refuse."""
    for opcode, operands, attrs, shape, _ in REJECTED:
        try:
            i = make(opcode, [parameter(s) for s in operands], shape, **attrs)
            i.op.shape(i, *operands)
        except HeronError:
            yield
    for opcode, operands, attrs, _ in BUILT:
        try:
            ops.get(opcode).shape(*_asked(opcode, operands, attrs))
        except HeronError:
            yield
    for pair in PAIRS:
        list(problems(parse(module(pair.refused))))
        yield


def _asked(opcode: str, operands: list[Shape], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """What to ask a shape rule."""
    return make(opcode, [parameter(s) for s in operands], f32(F32, 2), **attrs), *operands


def met() -> set[tuple[str, int]]:
    """Where `reject` was called from while the cases ran."""
    found: set[tuple[str, int]] = set()
    reject = ops.reject.__code__

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is reject and frame.f_back is not None:
            found.add((Path(frame.f_back.f_code.co_filename).name, frame.f_back.f_lineno))

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        for _ in _refused():
            pass
    finally:
        sys.setprofile(before)
    return found


def test_every_refusal_has_a_case() -> None:
    lines = {name: (FOLDER / name).read_text().splitlines() for name, _ in refusals()}
    missing = sorted(refusals() - met())
    assert not missing, "\n".join(f"{name}:{n}: {lines[name][n - 1].strip()}" for name, n in missing)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.opcode)
def test_refused(pair: Pair) -> None:
    found = list(problems(parse(module(pair.refused))))
    assert [p.code for p in found] == ["HLO010"], [str(p.error()) for p in found]
    assert pair.says in str(found[0].error())
    assert found[0].instruction is not None and found[0].instruction.name == "r"


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p.opcode)
def test_taken(pair: Pair) -> None:
    found = [p for p in problems(parse(module(pair.taken))) if p.code in ("HLO010", "HLO108")]
    assert found == [], [str(p.error()) for p in found]


@pytest.mark.parametrize(("opcode", "operands", "attrs", "says"), BUILT, ids=[b[0] for b in BUILT])
def test_built(opcode: str, operands: list[Shape], attrs: dict[str, Any], says: str) -> None:
    with pytest.raises(HeronError, match=says) as caught:
        ops.get(opcode).shape(*_asked(opcode, operands, attrs))
    assert caught.value.code == "HLO010"


#: what XLA's own inference lets through, though the op's definition does not allow it
LAX = {
    "pred cannot be clamped",
    "operand 0 must be a token",
    "operand 1 must be a token",
    "group_sizes must be integers",
    "must name one dimension",
    "do not match",
    "differ in size",
    "other dimensions than operand 0",
    "one result dimension for each operand dimension",
    "at least one operand",
    "only read and printed",
    "bf16[] is needed",
}


#: what ends XLA's process
FATAL = {"takes more from dimension 0"}


def test_xla_refuses_the_same() -> None:
    """Where XLA infers the shape itself, it takes what is taken here and refuses what is refused."""
    hlo = pytest.importorskip("jaxlib._hlo")

    def takes(line: str) -> bool:
        try:
            hlo.hlo_module_from_text(module(line, stated=False))
        except Exception:
            return False
        return True

    inferred = [p for p in PAIRS if p.opcode != "scan" and takes(p.taken)]
    assert len(inferred) > 40
    assert [p.refused for p in inferred if p.says not in LAX | FATAL and takes(p.refused)] == []
