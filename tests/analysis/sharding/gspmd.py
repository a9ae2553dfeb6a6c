"""`python -m tests.analysis.sharding.gspmd CHECKOUT`: XLA's sharding_propagation_test.cc on heron, as a table.

CHECKOUT is one of openxla/xla. GSPMD's propagation works on tiles and by another order than heron's, so differences are
no faults: the table counts for each expected sharding whether heron's is the same, splits more, splits less, or splits
in another way.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Sharding
from heron.hlo.sharding import parse as parse_sharding
from heron.hlo.text import parse
from heron.passes.sharding.sharding_propagation import find_shardings
from tests.analysis.sharding.sharded import prepared

FILE = "xla/service/sharding_propagation_test.cc"


@dataclass(slots=True)
class Outcome:
    """One test: how its expected shardings compare, and the differences; or why it was not run."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)
    refused: str = ""


def cases(text: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The name, the module's text and the expected sharding by instruction (the root is ``ROOT``) of each test."""
    for part in re.split(r"^TEST_[FP]\(", text, flags=re.M)[1:]:
        name = re.search(r"\w+,\s*(\w+)\)", part)
        module = re.search(r'R"\((.*?)\)"', part, re.S)
        if name is None or module is None:
            continue
        variables = dict(re.findall(r'(\w+)\s*=\s*FindInstruction\(module\.get\(\), "([^"]+)"\)', part))
        variables |= {
            v: "ROOT" for v in re.findall(r"(\w+)\s*=\s*module->entry_computation\(\)->root_instruction", part)
        }
        expected: dict[str, str] = {}
        for what, sharding in re.findall(r'EXPECT_THAT\(\s*([^,]+?),\s*op::Sharding\(\s*((?:"[^"]*"\s*)+)\)', part):
            found = re.search(r'FindInstruction\(module\.get\(\), "([^"]+)"\)', what)
            key = found[1] if found else "ROOT" if "root_instruction" in what else variables.get(what.strip())
            if key is not None:
                expected.setdefault(key, "".join(re.findall(r'"([^"]*)"', sharding)))
        if expected:
            yield name[1], module[1], expected


def run(name: str, text: str, expected: dict[str, str]) -> Outcome:
    """Propagate through one module and compare."""
    outcome = Outcome(name)
    try:
        module = prepared(_parsed(text))
        shardings, _, _ = find_shardings(module)
        shardings.write(module)
        named = {i.name: i for i in module.instructions()}
        for key, sharding in expected.items():
            i = module.entry.root if key == "ROOT" else named.get(key.removeprefix("%"))
            if i is None:
                outcome.counts["gone"] += 1
                continue
            verdict, have = _compared(i, parse_sharding(sharding))
            outcome.counts[verdict] += 1
            if verdict != "equal":
                outcome.lines.append(f"%{i.name}: {verdict}: GSPMD {sharding}, heron {have}")
    except HeronError as error:
        outcome.refused = f"{error.code} {error.what}"
    return outcome


def _parsed(text: str) -> Module:
    module = parse(text)
    if module.num_partitions == 1:
        counts = [int(n) for n in re.findall(r"<=\[(\d+)", text)]
        listed = re.findall(r"devices=\[[\d,]+\]((?:\d+,)*\d+)", text)
        found = [prod(map(int, d.split(","))) for d in re.findall(r"devices=\[([\d,]+)\]", text)]
        module.set_counts(1, max([*counts, *(d.count(",") + 1 for d in listed), *found, 1]))
    return module


def _compared(i: Instruction, want: Sharding) -> tuple[str, Sharding]:
    have = i.sharding or Sharding.replicated()
    elements = list(zip(_leaves(have), _leaves(want), strict=False))
    verdicts = {_one(a.canonical(), b.canonical()) for a, b in elements}
    return (verdicts.pop() if len(verdicts) == 1 else "in part"), have


def _leaves(s: Sharding) -> tuple[Sharding, ...]:
    return s.elements if s.is_tuple else (s,)


def _one(have: Sharding, want: Sharding) -> str:
    if have == want:
        return "equal"
    more = [a >= b for a, b in zip(have.data_dims, want.data_dims, strict=False)]
    if have.num_tiles > want.num_tiles and all(more):
        return "splits more"
    return "splits less" if have.num_tiles < want.num_tiles else "otherwise"


def table(found: list[Outcome]) -> str:
    """Totals, then each difference."""
    total = sum((o.counts for o in found), Counter())
    refused = [o for o in found if o.refused]
    lines = [
        f"{len(found)} tests, {len(refused)} refused; expected shardings: "
        + ", ".join(f"{n} {k}" for k, n in total.most_common())
    ]
    lines += [f"{o.name}: {o.refused}" for o in refused]
    return "\n".join([*lines, *(f"{o.name} {line}" for o in found for line in o.lines)])


if __name__ == "__main__":
    source = (Path(sys.argv[1]) / FILE).read_text()
    print(table([run(*case) for case in cases(source) if len(sys.argv) < 3 or case[0] in sys.argv[2:]]))
