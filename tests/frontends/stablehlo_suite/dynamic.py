"""Programs without checks that leave sizes open: run for a chosen size, and held against XLA:CPU."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from heron.cli import values
from heron.frontends.stablehlo.importer import imported
from heron.frontends.stablehlo.syntax import Program
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import UNBOUNDED, Shape, scalar
from heron.hlo.ir.types import S64

#: the size of every open dimension; the first arguments of these programs say it
SIZE = 5
_SAYS_SIZE = scalar(S64)

_MAIN = re.compile(r"func\.func (?:public )?@main\((.*?)\) -> (.*?) \{\n", re.DOTALL)
_ATTRIBUTES = re.compile(r"\{[^{}]*\}")
_NAMES = {"pred": "i1", "c64": "complex<f32>", "c128": "complex<f64>"}


def is_open(program: Program) -> bool:
    """Whether an argument of the program has an open size."""
    main = program.functions.get("main")
    return main is not None and any(a.type.is_unbounded for a in main.arguments)


def specialised(program: Program, name: str) -> Module:
    """The module for open dimensions of `SIZE` elements."""
    arguments: list[Any] = []
    for argument in program.functions["main"].arguments:
        shape = argument.type
        says_size = shape is _SAYS_SIZE and all(isinstance(a, np.ndarray) for a in arguments)
        known = shape.with_dims(tuple(SIZE if d == UNBOUNDED else d for d in shape.dims))
        arguments.append(np.array(SIZE) if says_size else known)
    return imported(program, name, verify=True, arguments=arguments)


def inputs(module: Module) -> list[np.ndarray]:
    """Arguments that give numbers; the first says the open size."""
    arrays = values.random(module, 0)
    for n in range(_count(module)):
        arrays[n] = np.array(SIZE)
    return arrays


def _count(module: Module) -> int:
    """How many arguments say sizes: the first ones."""
    shapes = [p.shape for p in module.entry.parameters]
    return next((n for n, s in enumerate(shapes) if s is not _SAYS_SIZE), len(shapes))


def by_xla(text: str, module: Module, arrays: list[np.ndarray]) -> list[np.ndarray] | None:
    """What XLA:CPU computes for these arguments, sizes found by JAX's own pass; None where that pass finds them not."""
    from jax._src.interpreters.mlir import make_ir_context, refine_polymorphic_shapes
    from jaxlib.mlir import ir

    from tests.xla_cpu import run_stablehlo

    with make_ir_context():
        try:
            refined = refine_polymorphic_shapes(ir.Module.parse(_called(text, module)))
        except (ir.MLIRError, ValueError):
            return None
        source = str(refined)
    return run_stablehlo(source, *arrays[_count(module) :])


def _called(text: str, module: Module) -> str:
    """The program called with known sizes, as JAX calls one of `jax.export`."""
    match = _MAIN.search(text)
    assert match is not None
    open_types = re.findall(r": (tensor<[^{},]*>)", _ATTRIBUTES.sub("", match[1]))
    known = [_mlir(p.shape) for p in module.entry.parameters]
    names = [f"%a{n}" for n in range(len(known))]
    first = _count(module)
    lines = [f"    %s = stablehlo.constant dense<{SIZE}> : tensor<i64>"]
    for name, own, stated in list(zip(names, known, open_types, strict=True))[first:]:
        lines.append(f"    {name}.open = stablehlo.convert {name} : ({own}) -> {stated}")
    passed = ", ".join(["%s"] * first + [f"{name}.open" for name in names[first:]])
    results = _ATTRIBUTES.sub("", match[2]).strip("()")
    count = len(re.findall("tensor<", results))
    shown = ", ".join(f"%r#{n}" for n in range(count)) if count > 1 else "%r"
    taken = ", ".join(f"{n}: {t}" for n, t in list(zip(names, known, strict=True))[first:])
    main = f"""  func.func public @main({taken}) -> ({results}) {{
{chr(10).join(lines)}
    %r{f":{count}" if count > 1 else ""} = call @program({passed}) : ({", ".join(open_types)}) -> ({results})
    return {shown} : {results}
  }}
"""
    head = text[match.start() : match.end()].replace("public ", "").replace("@main", "private @program", 1)
    return text[: match.start()] + main.lstrip() + "  " + head + text[match.end() :]


def _mlir(shape: Shape) -> str:
    t = shape.element_type
    signless = t.name.replace("s", "i") if t.is_signed else t.name.replace("u", "ui") if t.is_unsigned else t.name
    return f"tensor<{''.join(f'{d}x' for d in shape.dims)}{_NAMES.get(t.name, signless)}>"
