"""Random fusions of several outputs that may lie in their inputs, compiled and compared with the evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random

import numpy as np

from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.options import Options

TARGETS = ("cpu", "sim:sm_90")
#: shapes of the inputs: a square one looks the same transposed
SHAPES: tuple[tuple[int, ...], ...] = ((), (), (1,), (8,), (6, 6), (32, 32), (40, 40), (4, 9), (3, 5), (64,))
LONG = (5, 20, 70, 130)
PLUS = "plus {\n  a = s32[] parameter(0)\n  b = s32[] parameter(1)\n  ROOT c = s32[] add(a, b)\n}"


class Writer:
    """Writes one module: an entry that is one fusion; `rng` makes all choices.

    The fusion has inputs of one shape, arrays that it sums to that shape, outputs of that shape and of the arrays'.
    Every value is used.
    """

    def __init__(self, rng: Random) -> None:
        self.rng, self.dims = rng, rng.choice(SHAPES)
        self.lines: list[str] = []
        self.parameters: list[tuple[int, ...]] = []
        self.outputs: list[tuple[str, tuple[int, ...]]] = []
        self.leaves: list[str] = []
        self.unused: list[str] = []

    def module(self) -> str:
        rng, dims = self.rng, self.dims
        for _ in range(rng.randint(2, 4)):
            self.grow(self.parameter(dims))
        if dims and rng.random() < 0.3:
            self.grow(self.put(dims, f"reshape({self.parameter((prod(dims),))})"))
        for _ in range(rng.randint(0, 3)):
            self.summed()
        trees = [self.tree(rng.randint(1, 4)) for _ in range(rng.randint(2, 5))]
        while self.unused:
            n = rng.randrange(len(trees))
            trees[n] = self.put(dims, f"add({trees[n]}, {self.leaf()})")
        flat = (prod(dims),) if dims and rng.random() < 0.3 else dims
        for value in trees:
            shape = rng.choice((dims, flat))
            change = "reshape" if shape != dims else "negate"
            self.outputs.append((self.put(shape, f"{change}({value})"), shape))
        rng.shuffle(self.outputs)
        return self.text()

    def text(self) -> str:
        types = ", ".join(_type(dims) for _, dims in self.outputs)
        names = ", ".join(name for name, _ in self.outputs)
        inputs = [f"  q{n} = {_type(dims)} parameter({n})" for n, dims in enumerate(self.parameters)]
        given = ", ".join(f"q{n}" for n in range(len(inputs)))
        body = "\n".join([*self.lines, f"  ROOT all = ({types}) tuple({names})"])
        root = f"  ROOT r = ({types}) fusion({given}), kind=kInput, calls=several"
        entry = "\n".join([*inputs, root])
        return f"HloModule m{self.aliases()}\n\n{PLUS}\n\nseveral {{\n{body}\n}}\n\nENTRY main {{\n{entry}\n}}\n"

    def aliases(self) -> str:
        """Most outputs have an input of their shape to lie in, whichever that is."""
        free = list(range(len(self.parameters)))
        self.rng.shuffle(free)
        pairs: list[str] = []
        for n, (_, dims) in enumerate(self.outputs):
            place = next((p for p in free if self.parameters[p] == dims), None)
            if place is not None and self.rng.random() < 0.85:
                free.remove(place)
                pairs.append(f"{{{n}}}: ({place}, {{}}, may-alias)")
        return f", input_output_alias={{ {', '.join(pairs)} }}" if pairs else ""

    # -- values --------------------------------------------------------------------------------------------------------
    def put(self, dims: Sequence[int], text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"  {name} = {_type(dims)} {text}")
        return name

    def parameter(self, dims: tuple[int, ...]) -> str:
        self.parameters.append(dims)
        return self.put(dims, f"parameter({len(self.parameters) - 1})")

    def grow(self, value: str) -> None:
        """A value for the outputs to be made of."""
        self.leaves.append(value)
        self.unused.append(value)

    def leaf(self) -> str:
        found = self.rng.choice(self.unused if self.unused and self.rng.random() < 0.7 else self.leaves)
        self.unused = [u for u in self.unused if u != found]
        return found

    def tree(self, depth: int) -> str:
        rng, dims = self.rng, self.dims
        if depth == 0 or rng.random() < 0.2:
            return self.leaf()
        kind = rng.choice(("unary", "binary", "binary", "binary", "binary", "move"))
        if kind == "unary":
            return self.put(dims, f"{rng.choice(('negate', 'abs', 'not'))}({self.tree(depth - 1)})")
        if kind == "binary":
            return self.put(dims, f"{self.operator()}({self.tree(depth - 1)}, {self.tree(depth - 1)})")
        if len(dims) == 2 and dims[0] == dims[1]:
            return self.put(dims, f"transpose({self.leaf()}), dimensions={{1,0}}")
        if dims and rng.random() < 0.4:
            return self.put(dims, f"reverse({self.tree(depth - 1)}), dimensions={{0}}")
        return self.tree(depth - 1)

    def operator(self) -> str:
        return self.rng.choice(("add", "subtract", "multiply"))

    # -- sums ----------------------------------------------------------------------------------------------------------
    def summed(self) -> None:
        """An array, its sums, and at times an output of its shape."""
        rng, rank, long = self.rng, len(self.dims), self.rng.choice(LONG)
        dims, gone = rng.choice(
            (
                ((*self.dims, long), (rank,)),
                ((long, *self.dims), (0,)),
                ((long // 5, *self.dims, 5), (0, rank + 1)),
            )
        )
        array = self.parameter(dims)
        self.grow(self.sum_of(array, dims, gone))
        if rng.random() < 0.4:
            wide = self.wide(array, dims, gone)
            self.outputs.append((self.put(dims, f"{rng.choice(('negate', 'abs'))}({wide})"), dims))

    def sum_of(self, array: str, dims: tuple[int, ...], gone: tuple[int, ...]) -> str:
        if self.rng.random() < 0.4:
            array = self.put(dims, f"negate({array})")
        zero = self.put((), "constant(0)")
        over = ",".join(map(str, gone))
        return self.put(self.dims, f"reduce({array}, {zero}), dimensions={{{over}}}, to_apply=plus")

    def wide(self, value: str, dims: tuple[int, ...], gone: tuple[int, ...]) -> str:
        """A value of an array's shape, made from the array, others and its sums; it may be summed again."""
        kept = ",".join(str(d) for d in range(len(dims)) if d not in gone)
        for _ in range(self.rng.randint(0, 3)):
            spread = self.rng.random() < 0.8
            other = (
                self.put(dims, f"broadcast({self.leaf()}), dimensions={{{kept}}}") if spread else self.parameter(dims)
            )
            value = self.put(dims, f"{self.operator()}({value}, {other})")
            if self.rng.random() < 0.3:
                self.grow(self.sum_of(value, dims, gone))
        return value


def _type(dims: Sequence[int]) -> str:
    return f"s32[{','.join(map(str, dims))}]"


def random_fusion(rng: Random) -> str:
    """HLO text of a module that is one fusion of s32 arrays, whose outputs may lie in its parameters."""
    return Writer(rng).module()


def check(text: str, targets: Sequence[str] = TARGETS) -> None:
    """Compile and run `text`, its parameters given up, and compare each output with the evaluator's."""
    module = parse(text)
    generator = np.random.default_rng(0)
    inputs = [generator.integers(-9, 9, p.shape.dims).astype(np.int32) for p in module.entry.parameters]
    wanted = evaluate(module, *inputs)
    for target in targets:
        executable = compile(module, target, options=Options(sim_check="all"))
        found = executable.run([x.copy() for x in inputs], donate=True)
        for n, (ours, right) in enumerate(zip(found, wanted, strict=True)):
            np.testing.assert_array_equal(ours, right, f"{target}, output {n}")
