"""The work of ``heron indexing``."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from heron.analysis.indexing.computations import computation_indexings, parameter_indexings
from heron.analysis.indexing.expr import format_expr
from heron.analysis.indexing.inverse import transposed
from heron.analysis.indexing.operands import operand_indexing
from heron.analysis.indexing.runtime import Indexing
from heron.analysis.indexing.text import variable_names
from heron.cli.common import load_module, print_json, print_text
from heron.errors import HeronError
from heron.hlo.facts import is_call
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module


def run(file: str, name: str | None, to_output: bool, through: bool, as_json: bool) -> None:
    """Print the indexing maps of one instruction of FILE, or of all."""
    if to_output and through:
        raise HeronError("CLI038", "--to-output and --through do not go together", hint="leave one out")
    if through and name is None:
        raise HeronError("CLI038", "--through starts from one instruction", hint="name it with --instruction")
    module = load_module(file)
    chosen = _chosen(module, name)
    if through:
        rows = list(_through(chosen[0]))
    else:
        rows = [row for i in chosen for row in (_to_output(i) if to_output else _operands(i))]
    if as_json:
        print_json(rows)
    else:
        print_text("\n".join(_lines(rows)) or "no instruction reads an array")


def _chosen(module: Module, name: str | None) -> list[Instruction]:
    everything = [i for c in module.computations for i in c.instructions]
    if name is None:
        return everything
    found = [i for i in everything if i.name == name.removeprefix("%")]
    if not found:
        near = difflib.get_close_matches(name, [i.name for i in everything], 1)
        hint = f"did you mean '{near[0]}'?" if near else "`heron fmt` shows their names"
        raise HeronError("CLI039", f"no instruction is called '{name}'", where=module.name, hint=hint)
    return found[:1]


def _outputs(i: Instruction) -> list[int]:
    parts = i.shape.tuple_shapes
    return [0] if parts is None else [k for k, s in enumerate(parts) if s.is_array]


def _operands(i: Instruction) -> Iterable[dict[str, Any]]:
    for output in _outputs(i):
        for operand, ways in zip(i.operands, _ways(i, output), strict=True):
            if operand.shape.is_array:
                yield _row(i, output, operand.name, ways)


def _to_output(i: Instruction) -> Iterable[dict[str, Any]]:
    for output in _outputs(i):
        for operand, ways in zip(i.operands, _ways(i, output), strict=True):
            if operand.shape.is_array:
                back = [way and transposed(way.map, operand.shape.dims) for way in ways]
                yield _row(i, output, operand.name, [m and Indexing(m) for m in back])


def _ways(i: Instruction, output: int) -> Sequence[Iterable[Indexing | None]]:
    """The maps by which `i` reads each operand: one, or as many as its body has."""
    if is_call(i):
        return parameter_indexings(i, output)
    return [[operand_indexing(i, n, output)] for n in range(len(i.operands))]


def _through(i: Instruction) -> Iterable[dict[str, Any]]:
    for output in _outputs(i):
        for (source, part), ways in computation_indexings(i, output).items():
            if source is not i:
                suffix = f"[{part}]" if source.shape.tuple_shapes is not None else ""
                yield _row(i, output, source.name + suffix, ways)


def _row(i: Instruction, output: int, read: str, ways: Iterable[Indexing | None]) -> dict[str, Any]:
    maps = []
    for way in ways:
        m = None if way is None else way.map
        runtime = {} if m is None or way is None else _origins(way)
        maps.append({"map": "UNDEFINED" if m is None else str(m), "runtime": runtime})
    result = i.name + (f"[{output}]" if i.shape.tuple_shapes is not None else "")
    return {"instruction": i.name, "opcode": i.opcode, "result": result, "reads": read, "maps": maps}


def _origins(way: Indexing) -> dict[str, str]:
    """Runtime variable -> the value it is read from."""
    names = variable_names(way.map)
    spelled = list(names.values())[len(way.map.dims) + len(way.map.syms) :]
    places = [", ".join(format_expr(e, names.__getitem__) for e in v.index) for v in way.runtime]
    return {n: f"{v.source.name}[{place}]" for n, v, place in zip(spelled, way.runtime, places, strict=False)}


def _lines(rows: Iterable[dict[str, Any]]) -> Iterable[str]:
    result = None
    for row in rows:
        if row["result"] != result:
            result = row["result"]
            yield f"{result} = {row['opcode']}"
        for way in row["maps"] or [{"map": "nothing is read", "runtime": {}}]:
            yield f"  {row['reads']}: {way['map']}"
            yield from (f"    {name} = {place}" for name, place in way["runtime"].items())
