"""`python -m tests.analysis.sharding.compare FOLDER`: propagation beside XLA's, value by value.

FOLDER holds ``hlo/NAME.hlo`` (sharded programs as they reach a compiler) and ``xla_sharded/NAME.hlo`` (the same after
XLA's propagation). Values are matched from the results down: by op, shape and place among the operands. XLA writes
reshards as copies, so a value has the shardings of all copies that stand for it; equal to one of them is equal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from heron.analysis.sharding.propagate import Propagated
from heron.analysis.sharding.reasons import Reasons
from heron.hlo.calls.markers import MARKERS
from heron.hlo.facts import is_given
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding import Sharding
from heron.hlo.text import parse
from heron.passes.control_flow.call_inliner import CallInliner
from heron.passes.framework.context import PassContext
from heron.passes.sharding.sharding_propagation import find_shardings
from tests.analysis.sharding.sharded import prepared


@dataclass(slots=True)
class Difference:
    """A value with another sharding than XLA's, and the reasons for ours."""

    value: str
    shape: Shape
    mine: str
    theirs: list[str]
    reasons: list[str]


@dataclass(slots=True)
class Comparison:
    """Of one program: the number of values matched, those that are not, and the differences."""

    name: str
    matched: int = 0
    unmatched: int = 0
    differences: list[Difference] = field(default_factory=list)


def compare(module: Module, theirs: Module, name: str = "") -> Comparison:
    """Propagate through `module`, which `prepared` made, and compare with XLA's shardings in `theirs`."""
    shardings, done, _ = find_shardings(module)
    shardings.write(module)
    pairs = _Pairs()
    pairs.computations(module.entry, theirs.entry)
    found = Comparison(name)
    for i, others in pairs.found.items():
        for n, (_, leaf) in enumerate(i.shape.leaves()):
            if not leaf.rank or leaf.num_elements == 1:
                continue
            mine = _leaf(i, n)
            known = [s for o in others if (s := _leaf(o, n)) is not None]
            if not known:
                found.unmatched += 1
                continue
            found.matched += 1
            if mine is None or all(mine != s for s in known):
                found.differences.append(_difference(done, i, n, leaf, mine, known))
    return found


def _difference(
    done: Propagated, i: Instruction, n: int, leaf: Shape, mine: Sharding | None, theirs: list[Sharding]
) -> Difference:
    index = [at for at, _ in i.shape.leaves()][n]
    reasons = Reasons(done)
    lines = [str(r) for r in (*reasons.steps(i, index), *reasons.refusals(i, index))]
    value = i.name + "".join(f".{k}" for k in index)
    return Difference(value, leaf, str(mine), sorted({str(s) for s in theirs}), lines)


def _leaf(i: Instruction, n: int) -> Sharding | None:
    """The sharding of leaf `n` in tiles; replicated where nothing is written."""
    s = i.sharding
    if s is None:
        return Sharding.replicated() if not i.shape.is_tuple else None
    if s.is_tuple:
        s = s.elements[n]
    return s.canonical()


class _Pairs:
    """Instructions of one program with those of the other that stand for the same value."""

    def __init__(self) -> None:
        self.found: dict[Instruction, list[Instruction]] = {}
        self.seen: set[tuple[object, object]] = set()

    def computations(self, a: Computation, b: Computation) -> None:
        if (a, b) not in self.seen:
            self.seen.add((a, b))
            self.values(a.root, b.root)

    def values(self, a: Instruction, b: Instruction) -> None:
        stack = [(a, b)]
        while stack:
            a, b = map(_packed, stack.pop())
            if (a, b) in self.seen:
                continue
            self.seen.add((a, b))
            if a.shape.bare is not b.shape.bare or is_given(a) and a.opcode != "parameter":
                continue
            if b.opcode == "copy" and a.opcode != "copy":  # a reshard of XLA's
                self.found.setdefault(a, []).append(b)
                stack.append((a, b.operands[0]) if not _is_marker(a) else (a.operands[0], b.operands[0]))
                continue
            if _is_marker(a) and not _is_marker(b) or a.opcode == "copy" and b.opcode != "copy":
                stack.append((a.operands[0], b))
                continue
            if a.opcode != b.opcode or len(a.operands) != len(b.operands):
                continue
            self.found.setdefault(a, []).append(b)
            stack += zip(a.operands, b.operands, strict=True)
            if a.opcode in ("while", "conditional"):
                for c, d in zip(a.called, b.called, strict=True):
                    self.computations(c, d)


def _packed(i: Instruction) -> Instruction:
    """The value that a tuple was made of, where `i` takes it out again."""
    while i.opcode == "get-tuple-element" and i.operands[0].opcode == "tuple":
        i = i.operands[0].operands[i.index]
    return i


def _is_marker(i: Instruction) -> bool:
    return i.opcode == "custom-call" and i.custom_call_target in MARKERS and len(i.operands) == 1


def programs(folder: Path) -> Iterator[tuple[str, Module, Module]]:
    """The name of each program of a folder, its module ready for propagation, and XLA's module after it."""
    for path in sorted((folder / "xla_sharded").glob("*.hlo")):
        theirs = parse(path.read_text())
        CallInliner().run(theirs, PassContext())
        yield path.stem, prepared(parse((folder / "hlo" / path.name).read_text()), theirs.num_partitions), theirs


def table(found: list[Comparison], verbose: bool = True) -> str:
    """Counts by program, then each difference with its reasons."""
    lines = [f"{'program':24} {'values':>7} {'equal':>7} {'differ':>7} {'unmatched':>9}"]
    for c in found:
        lines.append(
            f"{c.name:24} {c.matched:7} {c.matched - len(c.differences):7} {len(c.differences):7} {c.unmatched:9}"
        )
    for c in found if verbose else ():
        for d in c.differences:
            lines.append(f"\n{c.name} %{d.value} {d.shape}\n  heron {d.mine}\n  XLA   {'; '.join(d.theirs)}")
            lines += [f"    {reason}" for reason in d.reasons]
    return "\n".join(lines)


if __name__ == "__main__":
    chosen = sys.argv[2:]
    every = [
        compare(mine, theirs, name)
        for name, mine, theirs in programs(Path(sys.argv[1]))
        if not chosen or name in chosen
    ]
    print(table(every))
