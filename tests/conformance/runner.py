"""Runs cases: the evaluator one by one, XLA:CPU packed, a few hundred outputs to a compilation.

    from tests.conformance.case import Case, Closeness
    from tests.conformance.runner import expect_agreement

    def test_reverse() -> None:
        body = " p = f32[2,3] parameter(0)\\n ROOT r = f32[2,3] reverse(p), dimensions={1}"
        expect_agreement([Case("reverse", "f32", body)])

Where XLA:CPU is known to be wrong or to refuse is in disagreements.toml.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.tools.cloning import CloneContext
from heron.hlo.verifier import verify
from tests import xla_cpu
from tests.conformance.case import Case, agreement
from tests.conformance.disagreements import Disagreement, disagreements, refused

#: cases compiled together by XLA
PACK = 150


@dataclass
class Outcome:
    """What came of a case: ``agree``, ``documented``, ``refused`` or ``differ``, in words when not the first."""

    case: Case
    verdict: str
    words: str = ""
    used: list[Disagreement] = field(default_factory=list)


def expect_agreement(cases: Sequence[Case]) -> None:
    """Fails with the text of the smallest case that differs in a way nobody wrote down."""
    outcomes = list(run(cases))
    wrong = [o for o in outcomes if o.verdict == "differ"]
    if wrong:
        least = min(wrong, key=lambda o: (len(o.case.body), sum(a.size for a in o.case.inputs)))
        others = "\n".join(f"  {o.case.name}: {o.words}" for o in wrong[:40])
        pytest.fail(f"{len(wrong)} of {len(outcomes)} cases differ:\n{others}\n\n{least.case.text}", pytrace=False)


def run(cases: Sequence[Case], pack: int = PACK) -> Iterator[Outcome]:
    """The outcome of every case."""
    ready = []
    for case in cases:
        verify(case.module)
        known = refused(case)
        if known is None:
            ready.append(case)
            continue
        evaluate(case.module, *case.inputs)  # ours must not refuse
        yield Outcome(case, "refused", known.reason)
    for start in range(0, len(ready), pack):
        group = ready[start : start + pack]
        for case, theirs in zip(group, xla_values(group), strict=True):
            if isinstance(theirs, str):
                yield Outcome(case, "differ", f"XLA refuses: {theirs}")
            else:
                yield judge(case, evaluate(case.module, *case.inputs), theirs)


@np.errstate(all="ignore")
def judge(case: Case, ours: list[np.ndarray], theirs: list[np.ndarray]) -> Outcome:
    """Compare the outputs of a case."""
    shapes = leaves(case.module.entry.root.shape)
    assert len(ours) == len(theirs) == len(shapes), f"{case.name}: {len(ours)} outputs, XLA has {len(theirs)}"
    used: list[Disagreement] = []
    for n, (a, b, shape) in enumerate(zip(ours, theirs, shapes, strict=True)):
        t = shape.element_type
        if a.dtype != t.dtype or a.shape != shape.dims:
            return Outcome(case, "differ", f"output {n} is {a.dtype}{list(a.shape)}, not {shape}")
        b = b.reshape(a.shape).astype(t.dtype, copy=False)
        wrong = ~agreement(a, b, t, case.close)
        for d in disagreements():
            if wrong.any() and d.covers(case) and not case.close.bits:  # what only moves values has no excuse
                left = wrong & ~d.elements(case, a, b)
                if (left != wrong).any():
                    used.append(d)
                wrong = left
        if wrong.any():
            return Outcome(case, "differ", difference(case, n, a, b, wrong))
    return Outcome(case, "documented" if used else "agree", "; ".join(d.reason for d in used), used)


def difference(case: Case, n: int, ours: np.ndarray, theirs: np.ndarray, wrong: np.ndarray, whose: str = "XLA") -> str:
    """Words for the first element of output `n` that is `wrong`."""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    given = [str(x[at]) for x in case.inputs if x.shape == ours.shape]
    where = f"({', '.join(given)})" if given else f"at {list(at)}"
    return f"{int(wrong.sum())} of {wrong.size} in output {n}; {where} gives {ours[at]}, {whose} has {theirs[at]}"


class Runnable(Protocol):
    """What can be packed: a module and arrays for its parameters."""

    @property
    def module(self) -> Module: ...

    @property
    def inputs(self) -> list[np.ndarray]: ...


# -- packing --------------------------------------------------------------------------------------------------------
def xla_values(cases: Sequence[Runnable]) -> list[list[np.ndarray] | str]:
    """XLA's outputs for each case, or its first words of refusal."""
    try:
        flat = iter(xla_cpu.run(str(packed(cases)), *[a for case in cases for a in case.inputs]))
    except Exception as error:
        if len(cases) == 1:
            return [" ".join(str(error).split())[:300]]
        middle = len(cases) // 2
        return xla_values(cases[:middle]) + xla_values(cases[middle:])
    return [[next(flat) for _ in leaves(case.module.entry.root.shape)] for case in cases]


def packed(cases: Sequence[Runnable]) -> Module:
    """One module that does the work of all, with the parameters and the outputs of one behind those of the other."""
    module = Module("conformance")
    entry = module.add_computation(Computation("entry"), entry=True)
    outputs: list[Instruction] = []
    parameters = 0
    for case in cases:
        source = case.module.entry
        context = CloneContext(module, "")
        for i in source.post_order():
            copy = context.instruction(i)
            if i.opcode == "parameter":
                copy.attrs["number"] += parameters
            entry.attach(copy)
            for before in i.control_predecessors:
                copy.add_control_predecessor(context.instructions[before])
        parameters += len(source.parameters)
        outputs += _parts(entry, context.instructions[source.root])
    entry.root = entry.add("tuple", outputs)
    return module


def _parts(entry: Computation, value: Instruction) -> list[Instruction]:
    """The arrays in a value."""
    if not value.shape.is_tuple:
        return [value] if value.shape.is_array else []
    if value.opcode == "tuple":
        parts = list(value.operands)
    else:
        parts = [
            entry.add("get-tuple-element", [value], s, index=n) for n, s in enumerate(value.shape.tuple_shapes or ())
        ]
    return [p for part in parts for p in _parts(entry, part)]


def leaves(shape: Shape) -> list[Shape]:
    """The shapes of the arrays in a value of that shape."""
    return [s for _, s in shape.leaves() if s.is_array]
