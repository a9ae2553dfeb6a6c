"""``python -m tests.extracts``: an instruction and a kernel out of each of so many real programs, against the whole ones.

Each program, instruction and kernel is drawn by the seed. `heron extract` takes them out; what it writes must have, bit
for bit, the values that the evaluator gives the instruction in the whole program, and run on the target with them.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from heron import targets
from heron.backends.compiler import Compilation
from heron.cli import values
from heron.cli.series import series
from heron.evaluator import Evaluator, flatten
from heron.hlo.facts import is_given
from heron.hlo.ir.evaluation import Value
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.records import dataclass
from heron.trace import Trace
from tests.support import NAMES, heron, program

_SEED = 0  # of the inputs


@dataclass(frozen=True)
class Part:
    """A part of a program: ``%NAME`` or ``--kernel K``, its instruction, and the program that has the instruction."""

    workload: str
    words: tuple[str, ...]
    instruction: str
    module: Module

    @property
    def name(self) -> str:
        return f"{self.workload} {' '.join(self.words)}"


def drawn(workload: str, seed: int, target: str = "cpu") -> list[Part]:
    """An instruction that computes something, and a kernel, of the small form of that program."""
    draw = random.Random(f"{seed}/{workload}")
    source = parse(program(workload).read_text())
    computing = [i.name for i in _run(source) if not is_given(i) and i.shape.is_array]
    instruction = draw.choice(computing)
    found = [Part(workload, (f"%{instruction}",), instruction, source)]
    compilation = Compilation(source, targets.get(target), Options(), Trace())
    kernels = [k for k in compilation.executable().kernels if k.instructions]
    if kernels:
        kernel = draw.choice(kernels)
        text = compilation.text("scheduled")
        found.append(Part(workload, ("--kernel", kernel.name), kernel.instructions[0], parse(text)))
    return found


def _run(module: Module) -> Iterator[Instruction]:
    """The instructions that a run computes as arrays: those of the entry, of loops, branches and calls."""
    waiting = [module.entry]
    while waiting:
        for i in waiting.pop().instructions:
            if i.opcode in ("while", "conditional", "call"):
                waiting += i.called
            yield i


def fault(part: Part, folder: Path, target: str = "cpu") -> str | None:
    """The difference between the part by itself and in the whole program; None where there is none."""
    said = heron(
        "extract", program(part.workload), *part.words, "--random", _SEED, "-o", folder, "--target", target, "--json"
    )
    if said.code:
        return f"heron extract: {said.err}"
    file = folder / "values.npz"
    ours, whole = values.read(str(file)).outputs, _value(part)
    if whole is None:
        return None  # in a branch that is not taken: random inputs
    if len(ours) != len(whole):
        return f"{len(ours)} outputs, {len(whole)} in the whole program"
    for n, (a, b) in enumerate(zip(ours, whole, strict=True)):
        if (a.dtype, a.shape, a.tobytes()) != (b.dtype, b.shape, b.tobytes()):
            return f"output {n} has other values in the whole program"
    said = heron("run", folder / "program.hlo", "--expect", file, "--target", target)
    return f"heron run: {said.err or said.out}" if said.code else None


def _value(part: Part) -> list[np.ndarray] | None:
    """The arrays of the instruction in the whole program, when it is first computed; None if it never is."""
    found: list[list[np.ndarray]] = []

    def keep(i: Instruction, value: Value) -> None:
        if i.name == part.instruction and not found:
            found.append(flatten(value))

    Evaluator(part.module, keep).run(*values.random(parse(program(part.workload).read_text()), _SEED))
    return found[0] if found else None


def main(arguments: list[str] | None = None) -> int:
    """Draw, extract, compare, and print. 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.extracts", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--count", type=int, default=10, help=f"programs, at most {len(NAMES)}")
    parser.add_argument("--target", default="cpu")
    chosen = parser.parse_args(arguments)
    names = random.Random(chosen.seed).sample(NAMES, min(chosen.count, len(NAMES)))
    faults = 0
    with series("programs", len(names)) as work:
        for name in work.over(names):
            for part in drawn(name, chosen.seed, chosen.target):
                with tempfile.TemporaryDirectory() as folder:
                    told = fault(part, Path(folder), chosen.target)
                faults += told is not None
                print(f"{part.name}: {told or 'the same'}", flush=True)
    return work.code(faults)


if __name__ == "__main__":
    sys.exit(main())
