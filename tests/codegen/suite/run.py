"""Run programs of the suite: what each op gave on each target, against the evaluator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from heron.codegen.elemental import supported
from heron.errors import HeronError
from heron.hlo.ir.types import ElementType
from tests.codegen.run_kernel import emit_and_run, evaluate
from tests.codegen.suite.compare import difference
from tests.codegen.suite.heroes import Hero
from tests.codegen.suite.ops import Op, table
from tests.codegen.suite.program import Program
from tests.codegen.suite.values import specials, tame
from tests.ptx.run import emit_and_run_ptx

#: complex functions on whose special values and branch cuts nobody agrees
OPEN = frozenset({"power", "atan2"})
#: ``ptx:`` runs the PTX of a GPU, ``sim:`` the LLVM text before it
TARGETS = ("cpu", "sim:sm_90", "ptx:sm_90")


@dataclass(frozen=True)
class Outcome:
    """``found``: "ok", the code of a refusal, or what differs."""

    op: str
    hero: str
    place: str
    type: str
    target: str
    found: str
    detail: str = ""
    emitter: str = ""


@cache
def reason_against(op: Op, t: ElementType) -> str | None:
    """Why HLO has no such op on the type ("illegal"), or elemental emission refuses it; None when it should work."""
    p = Program()
    try:
        dims = (4,)
        name = p.op(op, t, dims, tuple(p.parameter(t, dims, specials(t)) for _ in range(3)))
        p.output(op, name, op.result_type(t), dims)
        root = p.root()
    except HeronError:
        return "illegal"
    for i in root.called[0].instructions:
        if i.opcode not in ("parameter", "tuple") and not (found := supported(i)):
            return found.reason
    return None


def programs(hero: Hero, t: ElementType, ops: Sequence[Op], after: bool) -> Iterator[Program]:
    """The ops on type `t` in front of the hero, or `after` it, some in each program."""
    for start in range(0, len(ops), hero.pack):
        yield (_after if after else _before)(hero, t, ops[start : start + hero.pack])


def _operands(p: Program, t: ElementType, dims: tuple[int, ...], hero: Hero, special: bool = True) -> tuple[str, ...]:
    """Three parameters: all pairs of special values for a plain loop, else values that make few NaNs."""
    values = specials(t)
    if hero.name == "loop" and special:
        n = len(values)
        data = [np.repeat(values, n), np.tile(values, n), np.roll(np.tile(values, n), 5)]
    else:
        data = [tame(t, int(np.prod(dims)), seed) for seed in range(3)]
    return tuple(p.parameter(t, dims, d) for d in data)


def _before(hero: Hero, t: ElementType, ops: Sequence[Op]) -> Program:
    p = Program()
    dims = (len(specials(t)) ** 2,) if hero.name == "loop" else hero.dims
    operands, tame_ones = _operands(p, t, dims, hero), _operands(p, t, dims, hero, special=False)
    for op in ops:
        known = not (t.is_complex and op.name in OPEN)
        name, result = p.op(op, t, dims, operands if known else tame_ones), op.result_type(t)
        for value, shape in hero.wrap(p, name, result, dims):
            p.output(op, value, result, shape)
    return p


def _after(hero: Hero, t: ElementType, ops: Sequence[Op]) -> Program:
    p = Program()
    values = tame(t, int(np.prod(hero.dims)), 7)
    source = p.parameter(t, hero.dims, np.round(values * 64) / 64 if t.is_complex else values)  # sums are exact
    for value, dims in hero.wrap(p, source, t, hero.dims):
        others = _operands(p, t, dims, hero)
        for op in ops:
            p.output(op, p.op(op, t, dims, (value, *others[:2])), op.result_type(t), dims)
    return p


def legal_ops(t: ElementType, chosen: Sequence[Op] | None = None) -> list[Op]:
    """The ops HLO has on a type."""
    return [op for op in chosen or table() if reason_against(op, t) != "illegal"]


def run(
    hero: Hero, t: ElementType, after: bool, chosen: Sequence[Op] | None = None, every_step: bool = True
) -> list[Outcome]:
    """Every op of a type with a hero, on all targets; kernels are verified after every step or after the last only."""
    place = "epilogue" if after else "prologue"
    outcomes, ops = [], []
    for op in legal_ops(t, chosen):
        why = reason_against(op, t)
        if why is None:
            ops.append(op)
        else:
            outcomes += [Outcome(op.name, hero.name, place, t.name, target, "GEN001", why) for target in TARGETS]
    for program in programs(hero, t, ops, after):
        outcomes += execute(program, hero, t, place, every_step)
    return outcomes


def execute(program: Program, hero: Hero, t: ElementType, place: str, every_step: bool = True) -> list[Outcome]:
    """A program on all targets."""
    want = evaluate(program.root(), program.inputs)
    return [o for target in TARGETS for o in _one(program, hero, t, place, target, want, every_step)]


def _ulps(op: Op, hero: Hero, t: ElementType, result: np.ndarray) -> float:
    """Units of the last place a result may be off."""
    if result.dtype.kind != "c":
        return 0.0 if op.exact and not (t.is_complex and op.name == "abs") else 2.0
    return 32.0 if hero.adds else 16.0 if op.name in OPEN else 4.0


def _least(op: Op, hero: Hero, result: np.ndarray) -> float:
    """What complex results are at least taken to be as large as: where terms cancel, what was lost is of their size."""
    if hero.adds and result.dtype.kind == "c":
        return max(1.0, float(np.max(np.abs(result), initial=0.0, where=np.isfinite(result))))
    return 1.0 if op.name in OPEN else 0.0


def _one(
    program: Program, hero: Hero, t: ElementType, place: str, target: str, want: list[np.ndarray], every_step: bool
) -> Iterator[Outcome]:
    try:
        if target.startswith("ptx:"):
            sm = target.removeprefix("ptx:")
            got, emitter = emit_and_run_ptx(program.root(), program.inputs, sm, every_step)
        else:
            got, emitter = emit_and_run(program.root(), program.inputs, target, every_step)
    except HeronError as error:
        for op in dict.fromkeys(program.labels):
            yield Outcome(op.name, hero.name, place, t.name, target, error.code, str(error))
        return
    found: dict[Op, str] = {}
    for op, g, w in zip(program.labels, got, want, strict=True):
        found[op] = found.get(op) or difference(g, w, _ulps(op, hero, t, g), _least(op, hero, w))
    for op, problem in found.items():
        yield Outcome(op.name, hero.name, place, t.name, target, "differs" if problem else "ok", problem, emitter)
