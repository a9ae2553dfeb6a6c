"""Programs of a StableHLO checkout, each with its checks as results of `main`: what it computes, and what is expected.

The ``check`` dialect is the test suite's own: no program outside it has such operations, so they are rewritten here, in
the operations the reader gives, and the importer never sees them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heron.frontends.stablehlo.forms import Forms, form
from heron.frontends.stablehlo.reader import read
from heron.frontends.stablehlo.sizes import polymorphic
from heron.frontends.stablehlo.syntax import Function, Operation, Program
from heron.hlo.ir.shape import Shape

#: folders of a checkout, below stablehlo/
FOLDERS = ("testdata", "testdata/quantized", "testdata/dynamic", "tests/interpret", "tests/interpret/chlo")
#: programs whose expected values, or operations, are not XLA's; docs/use/frontends.md says of each why
DEVIATIONS = (
    *("tests/interpret/maximum#15", "tests/interpret/maximum#16", "tests/interpret/minimum#15"),
    *("tests/interpret/minimum#16", "tests/interpret/reduce_precision#1"),
    *(f"tests/interpret/collective_broadcast#{n}" for n in (0, 4, 8, 9)),
    *("tests/interpret/collective_reduce", "tests/interpret/all_gather#2"),
    *(f"testdata/dynamic/conv_general_dilated_1d_stride_2_{n}_dynamic" for n in ("even", "odd")),
)
_PARTS = re.compile(r"^// -----.*$", re.MULTILINE)
_CHECK = re.compile(r"(?:check\.)?(expect_eq|eq|expect_close|expect_almost_eq)(_const)?")
_RUN = "interpreter.run_parallel"


@dataclass(frozen=True, slots=True)
class Check:
    """How a pair of results is compared: by which rule, and how far apart they may be."""

    rule: str
    limit: float


@dataclass(frozen=True, slots=True)
class Case:
    """A program: its name in the table, its text, and the function of it whose checks count (None: all it does)."""

    name: str
    text: str
    function: str | None

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0].removesuffix("/chlo")


@form("check.expect_eq_const", "check.expect_almost_eq_const")
def _const(p: Forms, op: Operation) -> None:
    """``expect_eq_const %a, dense<…> : type, tolerance = 0.1``."""
    op.operands.append(p.value_name())
    p.expect(",")
    op.words.append(p.tokens[p.n])
    p.n += 1
    p.expect(":")
    op.attrs["type"] = p.type()
    if p.accept(","):
        p.word("tolerance")
        p.expect("=")
        op.attrs["tolerance"] = p.number()
    if p.tokens[p.n] == "{":
        op.attrs |= p.dictionary()


def cases(checkout: Path) -> Iterator[Case]:
    """Every program of a checkout, in order. Files of several programs give one case each, and one a function."""
    root = checkout / "stablehlo" if (checkout / "stablehlo").is_dir() else checkout
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.mlir")):
            parts = _PARTS.split(path.read_text(encoding="utf-8"))
            for n, text in enumerate(parts):
                if "func.func" not in text:
                    continue
                name = f"{folder}/{path.stem}" + (f"#{n}" if len(parts) > 1 else "")
                functions = _checked(text)
                for function in functions or (None,):
                    yield Case(name + (f".{function}" if len(functions) > 1 else ""), text, function)


def _checked(text: str) -> list[str]:
    """The functions of a text that hold checks."""
    found = []
    for part in re.split(r"(?=func\.func )", text)[1:]:
        name = re.match(r'func\.func\s+(?:public\s+|private\s+)?@([\w$.\-]+|"[^"]*")', part)
        if name is not None and re.search(r'check\.\w|"check\.', part):
            found.append(name[1])
    return found


# -- checks as results -----------------------------------------------------------------------------------------------
@dataclass(slots=True)
class Checked:
    """A program whose `main` gives pairs of results, and how to compare each pair.

    ``devices``: the program each device runs, in place of `main`, whose results are then their arguments.
    """

    program: Program
    checks: list[Check]
    parallel: Parallel | None = None


@dataclass(slots=True)
class Parallel:
    """A function run on replicas × partitions: the results of `main` are its arguments, one device after another.

    ``pairs``: for each check the device's result (by number, over all devices) and the result of `main` it is held
    against.
    """

    program: Program
    replicas: int
    partitions: int
    pairs: list[tuple[int, int]]


class Unsupported(Exception):
    """A program that tests the interpreter itself, and no meaning of StableHLO."""


def checked(case: Case, *, hide: bool = False) -> Checked:
    """The program of a case with its checks as results. ``hide``: no constant of it may be folded when compiling.

    Raises Unsupported, and what reading raises.
    """
    program = read(case.text, case.name)
    if case.function is None:
        return Checked(program, [])
    name = case.function.strip('"')
    function = replace(program.functions[name], name="main", public=True)
    assert function.body is not None
    types = {a.name: a.type for a in function.arguments}
    runs: list[Operation] = []
    operations: list[Operation] = []
    pairs: list[tuple[str, str]] = []
    checks: list[Check] = []
    for op in function.body.operations:
        target = str(op.attrs.get("call_target_name", op.name))
        match = _CHECK.fullmatch(target.removeprefix("check."))
        if op.name == _RUN:
            runs.append(op)
        if match is None or "check" not in target:
            if target.startswith(("check.", "interpreter.probe")):
                raise Unsupported(target)
            operations.append(op)
            types.update(zip(op.results, op.types, strict=True))
            continue
        if match[2]:
            constant = _constant(op, f"%expected.{len(checks)}")
            operations.append(constant)
            types[constant.results[0]] = constant.types[0]
            op.operands.append(constant.results[0])
        pairs.append((op.operands[0], op.operands[1]))
        checks.append(_rule(op, match[1]))
    last = operations[-1]
    if runs:
        return _parallel(program, function, operations, runs, pairs, checks, types)
    last.operands = [name for pair in pairs for name in pair]
    function.results = [(types[o], {}) for o in last.operands]
    last.given = None
    function.body.operations = operations
    program.functions["main"] = function
    if hide and not polymorphic(program):
        for f in program.functions.values():
            _hide(f)
    return Checked(program, checks)


def _constant(op: Operation, name: str) -> Operation:
    made = Operation(op.source, op.at, "stablehlo.constant", [name])
    made.words = op.words
    made.attrs = {"value": op.attrs["value"]} if "value" in op.attrs else {}
    value_type = op.attrs.get("type")
    made.types = (value_type if isinstance(value_type, Shape) else _of_value(op),)
    return made


def _of_value(op: Operation) -> Shape:
    from heron.hlo.ir import shape as shapes
    from heron.hlo.ir.types import of_dtype

    value: Any = op.attrs["value"]
    return shapes.row_major(of_dtype(value.dtype), *value.shape)


def _rule(op: Operation, rule: str) -> Check:
    if rule in ("eq", "expect_eq"):
        return Check("equal", 0)
    if rule == "expect_close":
        limit = op.attrs.get("max_ulp_difference", 3)
        return Check("ulps", float(limit))
    tolerance = op.attrs.get("tolerance", 1e-3)
    return Check("near", float(tolerance))


def _parallel(
    program: Program,
    function: Function,
    operations: list[Operation],
    runs: list[Operation],
    pairs: list[tuple[str, str]],
    checks: list[Check],
    types: dict[str, Shape],
) -> Checked:
    """The functions devices run, where all run the same one; `main` is left with their arguments and the constants."""
    (run,) = runs
    grid = run.attrs["programs"]
    names = {str(name) for row in grid for name in row}
    if len(names) != 1 or "infeed" in run.attrs:
        raise Unsupported("devices that run different functions, or read an infeed")
    (name,) = names
    before = operations[: operations.index(run)]
    after = [op for op in operations[operations.index(run) + 1 : -1] if op.name == "stablehlo.constant"]
    wanted = [want for _, want in pairs]
    last = operations[-1]
    last.operands = [*run.operands, *wanted]
    assert function.body is not None
    function.body.operations = [*before, *after, last]
    function.results = [(types[o], {}) for o in last.operands]
    last.given = None
    source = program.source
    alone = Program(source, functions={**program.functions, "main": replace(program.functions[name], name="main")})
    constants = Program(source, functions={"main": function})
    count = len(run.operands)
    links = [(run.results.index(got), count + n) for n, (got, _) in enumerate(pairs)]
    return Checked(constants, checks, Parallel(alone, len(grid), len(grid[0]), links))


def _hide(function: Function) -> None:
    """Let each constant of a function go through an optimization barrier."""
    assert function.body is not None
    made: list[Operation] = []
    for op in function.body.operations:
        made.append(op)
        if op.name == "stablehlo.constant" and op.types[0].is_array:
            (name,) = op.results
            barrier = Operation(op.source, op.at, "stablehlo.optimization_barrier", [name])
            op.results = [f"{name}.hidden"]
            barrier.operands, barrier.types = [f"{name}.hidden"], op.types
            made.append(barrier)
    function.body.operations = made
