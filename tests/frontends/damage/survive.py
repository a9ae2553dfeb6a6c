"""One damaged text taken as far as it goes: read, verified, printed, read back, compiled for the CPU and run."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

import heron
from heron.cli import values
from heron.errors import HeronError
from heron.frontends.stablehlo.importer import imported
from heron.frontends.stablehlo.reader import read
from heron.frontends.stablehlo.syntax import Program
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import UNBOUNDED, Shape
from heron.hlo.text import parse, print_module
from heron.hlo.verifier import problems

#: the size of open dimensions
SIZE = 3
#: elements a value may have for the program to be compiled, and all of them together
MAX_ELEMENTS, MAX_ALL = 1_000_000, 20_000_000


class Damage(Exception):
    """Something a damaged text must not lead to, apart from exceptions that are none of heron's."""


def survive(text: str, *, compiled: bool, stage: Callable[[str], None] = lambda name: None) -> str:
    """How far a text goes: ``refused CODE`` at a stage, ``verified``, or ``run``.

    ``stage`` is told what comes next. Raises Damage for a module that does not print as it reads, and whatever is no
    HeronError.
    """
    at = "read"
    try:
        stage(at)
        module = _module(text)
        at = "verify"
        stage(at)
        found = [problem.error() for problem in problems(module)]
        if found:
            return f"refused {found[0].code} by the verifier"
        at = "print"
        stage(at)
        printed = print_module(module)
        _reads_back(printed)
        if not compiled or not _is_small(module):
            return "verified"
        at = "compile"
        stage(at)
        executable = heron.compile(module)
        at = "run"
        stage(at)
        executable(*values.random(module, 0))
        return "run"
    except HeronError as error:
        return f"refused {error.code} at {at}"


def _module(text: str) -> Module:
    program = read(text, "damaged.mlir")
    return imported(program, "damaged.mlir", arguments=_arguments(program))


def _arguments(program: Program) -> list[Shape]:
    """Shapes for a program that leaves sizes open."""
    main = program.functions.get("main") or next(iter(program.functions.values()), None)
    if main is None or not any(a.type.is_unbounded and a.type.is_array for a in main.arguments):
        return []
    shapes = [a.type for a in main.arguments]
    return [s.with_dims(tuple(SIZE if d == UNBOUNDED else d for d in s.dims)) if s.is_unbounded else s for s in shapes]


def _reads_back(printed: str) -> None:
    try:
        again = parse(printed)
    except HeronError as error:
        raise Damage(f"what it prints cannot be read: {error}") from None
    if problems_of := [problem.error() for problem in problems(again)]:
        raise Damage(f"what it prints does not verify: {problems_of[0]}")


def _is_small(module: Module) -> bool:
    sizes = [prod(s.dims) for i in module.instructions() for _, s in i.shape.leaves() if s.is_array]
    return not sizes or (max(sizes) <= MAX_ELEMENTS and sum(sizes) <= MAX_ALL)


np.seterr(all="ignore")
