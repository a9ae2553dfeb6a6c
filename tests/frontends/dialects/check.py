"""One program of all functions of the files and the table, by heron and by XLA:CPU."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from heron.evaluator import evaluate
from heron.frontends.stablehlo.importer import parse
from heron.frontends.stablehlo.reader import read
from heron.frontends.stablehlo.syntax import Function, Region
from heron.frontends.stablehlo.types import tensor
from heron.hlo.ir.shape import Shape
from tests import xla_cpu
from tests.frontends.dialects.table import ARGUMENTS, SAME_TYPE
from tests.hlo.ops.agree import draw, same

FILES = sorted(Path(__file__).parent.glob("*.mlir"))


@cache
def texts() -> dict[str, str]:
    """Functions by file, and those of the table."""
    return {"table": "\n".join(_same_type()), **{path.stem: path.read_text() for path in FILES}}


def _same_type() -> list[str]:
    """A function for each operation and choice of arguments."""
    found = []
    for op, choices in SAME_TYPE.items():
        for n, names in enumerate(choices.split()):
            kind = f"tensor<{ARGUMENTS[names[0]]}>"
            given = ", ".join(f"%{a}: {kind}" for a in dict.fromkeys(names.split(",")))
            name = op if "." in op else f"stablehlo.{op}"
            values = ", ".join(f"%{a}" for a in names.split(","))
            types = ", ".join([kind] * (names.count(",") + 1)) + f" -> {kind}" if "." in op else kind
            head = f"func.func private @{name.replace('.', '_')}_{n}({given}) -> {kind}"
            found.append(f"{head} {{\n  %r = {name} {values} : {types}\n  return %r : {kind}\n}}")
    return found


def program(text: str) -> tuple[str, list[Function]]:
    """The text with a main that calls its functions in order and returns all they give; and those functions."""
    functions = [f for f in read(text, "<functions>").functions.values() if _is_case(f)]
    calls, results, kinds = [], [], []
    for n, f in enumerate(functions):
        given = ", ".join(a.name for a in f.arguments)
        types = ", ".join(f"tensor<{ARGUMENTS[a.name[1:]]}>" for a in f.arguments)
        gives = [_mlir(shape) for shape, _ in f.results]
        calls.append(f"  %{n}:{len(gives)} = func.call @{f.name}({given}) : ({types}) -> ({', '.join(gives)})")
        results += [f"%{n}#{k}" for k in range(len(gives))] if len(gives) > 1 else [f"%{n}"]
        kinds += gives
    arguments = ", ".join(f"%{name}: tensor<{kind}>" for name, kind in ARGUMENTS.items())
    body = "\n".join([*calls, f"  return {', '.join(results)} : {', '.join(kinds)}"])
    head = "module @cases attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {"
    return (
        f"{head}\n{text}\nfunc.func public @main({arguments}) -> ({', '.join(kinds)}) {{\n{body}\n}}\n}}\n",
        functions,
    )


def _is_case(f: Function) -> bool:
    return all(a.name[1:] in ARGUMENTS for a in f.arguments)


def _mlir(shape: Shape) -> str:
    names = {"pred": "i1", "c64": "complex<f32>"}
    t = shape.element_type
    name = names.get(t.name) or (t.name.replace("s", "i") if t.is_signed and t.is_integer else t.name)
    name = f"u{name.replace('u', 'i')}" if t.is_unsigned else name
    return f"tensor<{''.join(f'{d}x' for d in shape.dims)}{name}>"


@cache
def inputs() -> list[np.ndarray]:
    """Values for `ARGUMENTS`."""
    rng = np.random.default_rng(0)
    found = {name: draw(tensor(f"tensor<{kind}>"), rng) for name, kind in ARGUMENTS.items()}
    found["x"] = rng.uniform(0.05, 0.95, (4, 6)).astype(np.float32)
    found["i"], found["k"] = found["i"] % 5, np.array(1, np.int32)
    found["m"] = found["m"] @ found["m"].T + 4 * np.eye(4, dtype=np.float32)
    return list(found.values())


def differences(text: str) -> list[str]:
    """Where the evaluator of what heron imports and XLA:CPU differ, function by function."""
    whole, functions = program(text)
    got = evaluate(parse(whole, "<cases>", verify=True), *inputs())
    want = xla_cpu.run_stablehlo(whole, *inputs())
    places = [(f.name, n, shape) for f in functions for n, (shape, _) in enumerate(f.results)]
    found = []
    for (name, n, shape), ours, theirs in zip(places, got, want, strict=True):
        assert ours.dtype == shape.element_type.dtype and ours.shape == theirs.shape == shape.dims, (name, n)
        ok = same(ours, theirs, shape.element_type)
        if not ok.all():
            found.append(f"@{name} result {n}: {ours[~ok][:4]}, XLA has {theirs[~ok][:4]}")
    return found


def operations(text: str) -> set[str]:
    """Names of all operations in a text."""
    found: set[str] = set()
    work: list[Region] = [f.body for f in read(text, "<functions>").functions.values() if f.body is not None]
    while work:
        for op in work.pop().operations:
            found.add(op.name)
            work += op.regions
    return found
