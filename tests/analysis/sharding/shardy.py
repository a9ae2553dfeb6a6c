"""`python -m tests.analysis.sharding.shardy CHECKOUT [NAME …]`: Shardy's propagation tests on heron, as a table.

CHECKOUT is one of openxla/shardy. Each function of its tests is read by heron's importer, propagated, and compared with
the shardings that its CHECK lines expect of parameters, results and ops. heron has one strategy (aggressive, with op
priorities), so tests of the others may expect less.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from heron.errors import HeronError
from heron.frontends import from_bytes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.passes.sharding.sharding_propagation import find_shardings
from tests.analysis.sharding.sharded import prepared

FOLDER = "shardy/dialect/sdy/transforms/propagation/test"
FILES = (
    "basic_propagation",
    "basic_propagation_data_flow_edges",
    "basic_propagation_manual_computation",
    "aggressive_propagation",
    "op_priority_propagation",
    "user_priority_propagation",
    "sharding_group_propagation",
    "propagation_pipeline",
    "propagation_pipeline_data_flow_edges",
)
#: axes of each dimension as text
Dims = tuple[tuple[str, ...], ...]


@dataclass(slots=True)
class Outcome:
    """One function: the number of shardings compared, and those that differ; or why it was not run."""

    file: str
    name: str
    compared: int = 0
    different: list[str] = field(default_factory=list)
    refused: str = ""


def sections(text: str) -> Iterator[tuple[str, str, str]]:
    """The name, the text of the module with this function as main, and the function's own text, for each function."""
    for section in re.split(r"^// -----.*$", text, flags=re.M):
        meshes = re.findall(r"^sdy\.mesh .*$", section, re.M)
        starts = [m.start() for m in re.finditer(r"^func\.func ", section, re.M)]
        functions: dict[str, str] = {}
        for n, start in enumerate(starts):
            end = starts[n + 1] if n + 1 < len(starts) else len(section)
            name = re.search(r"@([\w.]+)", section[start:end])
            if name is not None:
                before = section[starts[n - 1] if n else 0 : start]
                functions[name[1]] = _leading_comments(before) + _until_end(section[start:end])
        for name, own in functions.items():
            if "CHECK" not in own or re.search(r"^func\.func private", own, re.M):
                continue
            called: dict[str, str] = {}
            waiting = [own]
            while waiting:
                for callee in re.findall(r"call @([\w.]+)", waiting.pop()):
                    if callee in functions and callee not in called and callee != name:
                        called[callee] = functions[callee]
                        waiting.append(functions[callee])
            main = re.sub(r"^func\.func (public )?@[\w.]+", "func.func public @main", _tagged(own), count=1, flags=re.M)
            body = "\n".join([main, *called.values()])
            used = [m for m in meshes if re.search(rf"@{_name_of(m)}\b", body)]
            yield name, "\n".join([*used, body]), own


def _name_of(mesh: str) -> str:
    found = re.search(r"@([\w.]+)", mesh)
    return found[1] if found else ""


def _leading_comments(text: str) -> str:
    """The comment lines at the end of a text: those that stand above a function."""
    lines = text.rstrip("\n").split("\n")
    kept: list[str] = []
    while lines and (lines[-1].lstrip().startswith("//") or not lines[-1].strip()):
        kept.append(lines.pop())
    return "\n".join(reversed(kept)) + "\n"


def _until_end(text: str) -> str:
    """The function alone: up to the first closing brace at the beginning of a line."""
    end = re.search(r"^\}", text, re.M)
    return text[: end.end()] + "\n" if end else text


# -- what is expected ------------------------------------------------------------------------------------------------
_SHARDING = re.compile(r"<@\w+, \[((?:\{[^{}]*\}(?:p\d+)?(?:, )?)*)\]")


def _dims(inner: str) -> Dims:
    found = []
    for dim in re.findall(r"\{([^{}]*)\}", inner):
        found.append(tuple(a.strip().replace('"', "'") for a in dim.split(",") if a.strip() not in ("", "?")))
    return tuple(found)


def _checks(own: str) -> list[str]:
    """The CHECK lines as logical lines: those marked SAME belong to the one before."""
    lines: list[str] = []
    for kind, rest in re.findall(r"//\s*CHECK(-LABEL|-NEXT|-SAME|-DAG)?:\s*(.*)$", own, re.M):
        if kind == "-SAME" and lines:
            lines[-1] += " " + rest
        else:
            lines.append(rest)
    return lines


def expected_interface(own: str) -> tuple[dict[int, Dims], list[Dims | None]]:
    """The dimensions of parameters by number, and of results, where the label line states them."""
    label = next((c for c in _checks(own) if c.startswith("func @") or c.startswith("func.func")), "")
    arguments, _, results = label.partition("->")
    parameters: dict[int, Dims] = {}
    for number, rest in re.findall(r"%arg(\d+):\s*tensor<[^>]*>(.*?)(?=%arg\d+:|$)", arguments):
        found = _SHARDING.search(rest)
        if found:
            parameters[int(number)] = _dims(found[1])
    outputs: list[Dims | None] = []
    for rest in re.findall(r"tensor<[^>]*>([^t]*(?:t(?!ensor)[^t]*)*)", results):
        found = _SHARDING.search(rest)
        outputs.append(_dims(found[1]) if found else None)
    return parameters, outputs if "sdy.sharding" in results else []


def expected_ops(own: str) -> dict[str, list[list[Dims] | None]]:
    """For each StableHLO op, in order, the shardings of its results; None where the line names none."""
    found: dict[str, list[list[Dims] | None]] = {}
    for line in _checks(own):
        op = re.search(r"stablehlo\.(\w+)", line)
        if op is None:
            continue
        stated = re.search(r"sdy\.sharding = #sdy\.sharding_per_value<\[(.*?)\]>\}", line)
        shardings = [_dims(s) for s in _SHARDING.findall(stated[1] + "]")] if stated else None
        found.setdefault(op[1], []).append(shardings)
    return found


_OP_LINE = re.compile(r"^\s*(?:%[\w:]+ = )?\"?stablehlo\.(\w+)\b")


def _tagged(own: str) -> str:
    """The function with a location at each op of one line, from which heron names the instruction: ``add_2``."""
    lines, counts = [], _Counts()
    for line in own.splitlines():
        op = _OP_LINE.match(line)
        if op:
            number = counts.next(op[1])
            if op[1] != "while" and re.search(r": .*(tensor|->).*[^,({]$", line):
                line += f' loc("op_{op[1]}_{number}_")'
        lines.append(line)
    return "\n".join(lines) + "\n"


class _Counts(dict[str, int]):
    def next(self, name: str) -> int:
        self[name] = self.get(name, -1) + 1
        return self[name]


def _written_ops(own: str) -> dict[str, int]:
    """The number of ops of each name in the function's own lines."""
    counts = _Counts()
    for line in own.splitlines():
        op = _OP_LINE.match(line)
        if op:
            counts.next(op[1])
    return {op: last + 1 for op, last in counts.items()}


# -- what heron finds ------------------------------------------------------------------------------------------------
def run(file: str, name: str, text: str, own: str) -> Outcome:
    """Propagate through one function and compare."""
    outcome = Outcome(file, name)
    try:
        module = prepared(from_bytes(text.encode(), f"{file}:{name}"))
        shardings, done, _ = find_shardings(module)
    except HeronError as error:
        outcome.refused = f"{error.code} {error.what}"
        return outcome
    mesh, entry = shardings.mesh, module.entry
    parameters, results = expected_interface(own)

    def compare(what: str, want: Dims, i: Instruction, index: tuple[int, ...]) -> None:
        shape, s = i.shape.at(index), shardings.of(i, index)
        outcome.compared += 1
        have = _texts(s, mesh)
        want = tuple(_known_axes(axes, mesh) for axes in want)
        if have != want and not _is_cut(want, s, shape.dims, mesh):
            outcome.different.append(f"{what}: expected {want}, found {have}")

    for number, want in parameters.items():
        if number < len(entry.parameters):
            compare(f"%arg{number}", want, entry.parameters[number], ())
    leaves = [index for index, leaf in entry.root.shape.leaves() if leaf.is_array]
    for index, want in zip(leaves, results, strict=False):
        if want is not None:
            compare(f"result {index}", want, entry.root, index)
    _compare_ops(own, [i for i in module.instructions() if i in done.flow.leaves], compare)
    return outcome


def _compare_ops(own: str, instructions: list[Instruction], compare) -> None:
    written = _written_ops(own)
    named = {re.sub(r"_(\.\d+)?$", "", i.name): i for i in instructions}
    for op, lines in expected_ops(own).items():
        if written.get(op) != len(lines):
            continue  # not one for one
        for n, want in enumerate(lines):
            i = named.get(f"op_{op}_{n}")
            if i is None:
                continue
            leaves = [index for index, leaf in i.shape.leaves() if leaf.is_array]
            if want is not None and len(want) == len(leaves):
                for index, dims in zip(leaves, want, strict=True):
                    compare(f"%{i.name}", dims, i, index)


def _texts(s: TensorSharding, mesh: AtomicMesh) -> Dims:
    return tuple(tuple(a.text(mesh.mesh) for a in mesh.merged(axes)) for axes in s.dims)


def _known_axes(axes: tuple[str, ...], mesh: AtomicMesh) -> tuple[str, ...]:
    """The axes that heron's mesh has: those of size 1 are gone."""
    names = {name for name, _ in mesh.mesh.axes}
    return tuple(a for a in axes if a.split(":")[0].strip("'") in names)


def _is_cut(want: Dims, s: TensorSharding, dims: tuple[int, ...], mesh: AtomicMesh) -> bool:
    """Whether `s` is what is wanted, cut back to whole axes that divide: the end of the pipeline."""
    have = _texts(s, mesh)
    return len(want) == len(have) and all(
        w == h or (w[: len(h)] == h and _next_is_uneven(w[len(h)], axes, size, mesh))
        for w, h, axes, size in zip(want, have, s.dims, dims, strict=True)
    )


def _next_is_uneven(axis: str, axes: tuple[int, ...], size: int, mesh: AtomicMesh) -> bool:
    name, _, part = axis.partition(":")
    whole = dict(mesh.mesh.axes)[name.strip("'")]
    return bool(part) or size % (mesh.size(axes) * whole) != 0


def outcomes(checkout: Path, names: tuple[str, ...] = ()) -> list[Outcome]:
    """All functions of the tests of a checkout, or those of these names."""
    found: list[Outcome] = []
    for file in FILES:
        text = (checkout / FOLDER / f"{file}.mlir").read_text()
        found += [run(file, name, module, own) for name, module, own in sections(text) if not names or name in names]
    return found


def table(found: list[Outcome]) -> str:
    """Counts by file, then each function that differs or was refused."""
    lines = [f"{'file':40} {'functions':>9} {'equal':>6} {'differ':>6} {'refused':>7} {'shardings':>9}"]
    for file in FILES:
        mine = [o for o in found if o.file == file]
        differ, refused = sum(bool(o.different) for o in mine), sum(bool(o.refused) for o in mine)
        equal, compared = len(mine) - differ - refused, sum(o.compared for o in mine)
        lines.append(f"{file:40} {len(mine):9} {equal:6} {differ:6} {refused:7} {compared:9}")
    for o in found:
        if o.refused:
            lines.append(f"{o.file} @{o.name}: {o.refused}")
        lines += [f"{o.file} @{o.name}: {d}" for d in o.different]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(outcomes(Path(sys.argv[1]), tuple(sys.argv[2:]))))
