"""Random programs of loops, branches and calls with nested tuples: what passes about control flow stumble over.

State elements are kept, swapped, counted, computed alike twice, read by nobody or by themselves alone; loops start from
tuples, from parameters and from other loops; branches are alike or differ in part. Every loop ends.

With ``shares`` computations have several callers: loops run a body, a condition or both that other loops run too, or
equal ones, from the same initial state or another one; so do branches and calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from heron.hlo.builder import Builder
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, row_major, scalar, tuple_
from heron.hlo.ir.types import F32, S8, S32, S64, U8, U32, ElementType

ROW = row_major(F32, 2)
NUMBER = scalar(S32)
SHAPES = (ROW, NUMBER, row_major(S32, 3))
COUNTERS: tuple[ElementType, ...] = (S32, S32, S32, S64, U32, U8, S8)


#: instructions run, loops counted by their rounds, above which a computation is not run from a second place
MOST_SHARED = 300


def program(seed: int, steps: int = 6, shares: bool = False) -> Module:
    """A module that verifies; the same for the same seed."""
    make = _Maker(Random(seed), shares)
    return make.module(steps)


@dataclass(frozen=True)
class _Loop:
    """A loop there is: its computations, the numbers of the counters in its state with their steps, and the counter
    that ends it: its type, first value and rounds."""

    init: Instruction
    condition: Computation
    body: Computation
    counters: dict[int, int]
    counted: int
    type: ElementType
    start: int
    trips: int


class _Maker:
    def __init__(self, random: Random, shares: bool) -> None:
        self.random = random
        self.shares = shares
        self.b = Builder("generated")
        self.loops: list[_Loop] = []
        self.functions: list[Computation] = []

    def module(self, steps: int) -> Module:
        shapes = (ROW, ROW, NUMBER, row_major(S32, 3), tuple_([ROW, NUMBER, ROW]))
        values: list[Instruction] = [self.b.parameter(n, s) for n, s in enumerate(shapes)]
        self.grow(self.b, values, steps, depth=0)
        used = values[len(shapes) :] if self.shares else values[-self.random.randint(1, 4) :]
        return self.b.build(used[0] if self.random.random() < 0.3 else self.b.tuple(*used))

    # -- one computation ---------------------------------------------------------------------------------------------
    def grow(self, b: Builder, values: list[Instruction], steps: int, depth: int) -> None:
        """Add the results of so many steps to `values`."""
        simple = (self.compute, self.compute, self.constant, self.pack, self.unpack)
        rich = (self.loop, self.loop, self.branch, self.call)
        for _ in range(steps):
            choice = self.random.choice(simple + rich if depth < 2 else simple)
            made = choice(b, values, depth)
            if made is not None:
                values.append(made)

    def compute(self, b: Builder, values: list[Instruction], depth: int) -> Instruction | None:
        arrays = [v for v in values if v.shape.is_array]
        x = self.random.choice(arrays)
        y = self.random.choice([v for v in arrays if v.shape.bare is x.shape.bare])
        if x.shape.element_type.is_float:
            made = self.random.choice(("add", "subtract", "minimum", "maximum", "negate"))
        else:
            made = self.random.choice(("add", "subtract", "multiply", "minimum", "xor", "negate"))
        return b.computation.add(made, [x] if made == "negate" else [x, y])

    def constant(self, b: Builder, values: list[Instruction], depth: int) -> Instruction | None:
        return b.full(self.random.randint(0, 5), self.random.choice(SHAPES))

    def pack(self, b: Builder, values: list[Instruction], depth: int) -> Instruction | None:
        flat = [v for v in values if sum(1 for _ in v.shape.leaves()) < 4]
        return b.tuple(*self.random.choices(flat, k=self.random.randint(1, 3)))

    def unpack(self, b: Builder, values: list[Instruction], depth: int) -> Instruction | None:
        tuples = [v for v in values if v.shape.tuple_shapes]
        if not tuples:
            return None
        whole = self.random.choice(tuples)
        return b.get_tuple_element(whole, index=self.random.randrange(len(whole.shape.tuple_shapes or ())))

    # -- calls -------------------------------------------------------------------------------------------------------
    def call(self, b: Builder, values: list[Instruction], depth: int) -> Instruction | None:
        given = self.random.choices(values, k=2)
        return b.call(*given, to_apply=self.function([v.shape for v in given], None, depth))

    def function(self, parameters: list[Shape], result: Shape | None, depth: int) -> Computation:
        """A computation of a few steps; its result is a value of the shape `result`, made of constants if need be."""
        known = [c for c in self.functions if self.fits(c, parameters, result)]
        if known and self.random.random() < 0.4:
            return self.again_or_equal(self.random.choice(known))
        inner = self.b.nested("function")
        values = [inner.parameter(n, s) for n, s in enumerate(parameters)]
        values += [v for p in values for v in self.elements(inner, p)]
        if not any(v.shape.is_array for v in values):
            values.append(inner.full(1, ROW))
        self.grow(inner, values, self.random.randint(1, 3), depth + 1)
        made = inner.finish(values[-1] if result is None else self.of_shape(inner, values, result))
        self.functions += [made] * self.shares
        return made

    def fits(self, c: Computation, parameters: list[Shape], result: Shape | None) -> bool:
        same = [p.shape.bare for p in c.parameters] == [s.bare for s in parameters]
        return same and (result is None or c.root.shape.bare is result.bare) and _work(c) <= MOST_SHARED

    def again_or_equal(self, c: Computation) -> Computation:
        """The computation itself, or one that is equal to it."""
        return c if self.random.random() < 0.7 else self.b.module.add_computation(c.clone())

    def elements(self, b: Builder, whole: Instruction) -> list[Instruction]:
        return [b.get_tuple_element(whole, index=n) for n in range(len(whole.shape.tuple_shapes or ()))]

    def of_shape(self, b: Builder, values: list[Instruction], shape: Shape) -> Instruction:
        fitting = [v for v in values if v.shape.bare is shape.bare]
        if fitting:
            return fitting[-1] if self.random.random() < 0.5 else self.random.choice(fitting)
        if shape.tuple_shapes is not None:
            return b.tuple(*(self.of_shape(b, values, s) for s in shape.tuple_shapes))
        return b.full(2, shape)

    def any_of_shape(self, b: Builder, values: list[Instruction], shape: Shape) -> Instruction:
        fitting = [v for v in values if v.shape.bare is shape.bare]
        return self.random.choice(fitting or [self.of_shape(b, values, shape)])

    def branch(self, b: Builder, values: list[Instruction], depth: int) -> Instruction | None:
        numbers = [v for v in values if v.shape.bare is NUMBER.bare]
        count = self.random.randint(1, 3)
        index = self.random.choice(numbers) if numbers else b.constant(self.random.randint(-1, 3), S32)
        if self.random.random() < 0.5:
            index, count = b.compare(index, 2, direction=self.random.choice(("LT", "GE"))), 2
        elif self.random.random() < 0.2:
            index = b.constant(self.random.randint(-1, 3), S32)
        given = [self.random.choice(values) for _ in range(count)]
        if self.random.random() < 0.5:  # all branches get the same
            given = given[:1] * count
        for n in range(count):
            if self.random.random() < 0.3:  # what no other branch needs
                given[n] = b.tuple(self.compute(b, values, depth), given[n])
        parts = [self.random.choice(values).shape for _ in range(self.random.randint(1, 3))]
        result = tuple_(parts) if self.random.random() < 0.7 else parts[0]
        state, branches = self.random.getstate(), []
        end = self.random.choice((None, "negate", "add"))  # what all branches end with
        for operand in given:
            if self.random.random() < 0.4 and operand is given[0]:
                self.random.setstate(state)  # does what the first one does
            branches.append(self.function([operand.shape], result, depth))
            root = branches[-1].root
            if end and root.opcode == "tuple" and root.operands[0].shape.is_array:
                last = root.operands[0]
                new = branches[-1].add(end, [last] * (1 if end == "negate" else 2))
                root.set_operand(0, new)
        return b.conditional(index, *given, branch_computations=branches)

    # -- loops -------------------------------------------------------------------------------------------------------
    def loop(self, b: Builder, values: list[Instruction], depth: int) -> Instruction | None:
        known = [k for k in self.loops if _work(k.body) <= MOST_SHARED]
        if known and self.random.random() < 0.6:
            return self.loop_like(self.random.choice(known), b, values, depth)
        t = self.random.choice(COUNTERS)
        kept = self.random.choices(values, k=self.random.randint(1, 4))
        if self.random.random() < 0.5:
            kept += [self.random.choice(kept), b.full(self.random.randint(0, 2), self.random.choice(SHAPES))]
        step, start = self.random.choice((1, 1, 2, -1)), self.random.randint(0, 4)
        trips = self.random.choice((0, 1, 2, 3, 4))
        steps = [step, *self.random.choices((step, 2 * step, 1), k=self.random.randint(0, 2))]
        counters = [b.constant(start, t), *(b.constant(self.random.choice((start, 3)), t) for _ in steps[1:])]
        inits = [*counters, *kept]
        order = list(range(len(inits)))
        self.random.shuffle(order)
        state = tuple_([inits[n].shape for n in order])
        counted = order.index(0)
        condition = self.again(state, counted, t, start, step, trips)
        counted_by = {order.index(n): k for n, k in enumerate(steps)}
        body = self.step(state, counted_by, t, depth)
        init = b.tuple(*(inits[n] for n in order))
        loop = b.while_(init, condition=condition, body=body)
        ends = t.is_unsigned and start + step * trips < 0
        self.loops += [_Loop(init, condition, body, counted_by, counted, t, start, 0 if ends else trips)] * self.shares
        return self.read_some(b, loop, values)

    def loop_like(self, known: _Loop, b: Builder, values: list[Instruction], depth: int) -> Instruction:
        """A loop on the same state as another one, which runs what that one runs, or part of it."""
        state, t, step = known.init.shape, known.type, known.counters[known.counted]
        condition, body = self.again_or_equal(known.condition), self.again_or_equal(known.body)
        way = self.random.randrange(4)
        if way == 0:
            body = self.step(state, known.counters, t, depth)
        elif way == 1:
            condition = self.again(state, known.counted, t, known.start, step, known.trips)
        init = known.init
        if init.parent is not b.computation or self.random.random() < 0.8:
            parts = [self.any_of_shape(b, values, s) for s in state.tuple_shapes or ()]
            for n, k in known.counters.items():
                value = known.start + k * self.random.randint(0, known.trips)
                parts[n] = b.constant(max(value, 0) if t.is_unsigned else value, t)
            init = b.tuple(*parts)
        return self.read_some(b, b.while_(init, condition=condition, body=body), values)

    def read_some(self, b: Builder, loop: Instruction, values: list[Instruction]) -> Instruction:
        results = self.elements(b, loop)
        least = len(results) if self.shares and self.random.random() < 0.7 else 1
        for n in self.random.sample(range(len(results)), self.random.randint(least, len(results))):
            values.append(results[n])
        return loop if self.random.random() < 0.1 else values[-1]

    def again(self, state: Shape, counted: int, t: ElementType, start: int, step: int, trips: int) -> Computation:
        inner = self.b.nested("condition")
        p = inner.parameter(0, state)
        count = inner.get_tuple_element(p, index=counted)
        end = start + step * trips
        if t.is_unsigned and end < 0:
            return inner.finish(inner.compare(count, inner.constant(start, t), direction="NE"))  # never runs
        direction = self.random.choice(("LT" if step > 0 else "GT", "NE"))
        bound = inner.constant(end, t)
        if self.random.random() < 0.3:
            swapped = {"LT": "GT", "GT": "LT", "NE": "NE"}[direction]
            return inner.finish(inner.compare(bound, count, direction=swapped))
        return inner.finish(inner.compare(count, bound, direction=direction))

    def step(self, state: Shape, counters: dict[int, int], t: ElementType, depth: int) -> Computation:
        """`counters`: by what each counter among the elements goes up."""
        inner = self.b.nested("body")
        p = inner.parameter(0, state)
        old = self.elements(inner, p)
        new = list(old)
        values = list(old)
        for n, k in counters.items():
            by = inner.constant(abs(k), t)
            new[n] = inner.add(old[n], by) if k > 0 else inner.subtract(old[n], by)
            if self.random.random() < 0.5:  # JAX's way with negative indices, and the like
                test = inner.compare(
                    old[n], self.random.randint(0, 9), direction=self.random.choice(("LT", "GE", "EQ"))
                )
                values.append(inner.select(test, inner.convert(old[n], shape=NUMBER), inner.constant(7, S32)))
        rest = [n for n in range(len(old)) if n not in counters]
        if any(v.shape.is_array and v.shape.element_type in (F32, S32) for v in values):
            seen = [v for v in values if not v.shape.is_array or v.shape.element_type in (F32, S32)]
            self.grow(inner, seen, self.random.randint(0, 3), depth + 1)
            values = seen
        for n in rest:
            alike = [m for m in rest if old[m].shape.bare is old[n].shape.bare]
            way = self.random.choice((0, 1, 2, 2, 2, 4)) if self.shares else self.random.randrange(6)
            if way == 0:
                new[n] = old[self.random.choice(alike)]  # swapped, or handed along
            elif way == 1:
                new[n] = new[self.random.choice(alike)]  # what another one becomes
            elif way == 2 and old[n].shape.is_array:
                new[n] = inner.add(old[n], old[n])  # what only itself depends on
            elif way > 3:
                new[n] = self.of_shape(inner, values, old[n].shape)
        return inner.finish(inner.tuple(*new))


def _work(c: Computation) -> int:
    """How many instructions a call runs, at four rounds a loop."""
    rounds = {"while": 4}
    return sum(1 + rounds.get(i.opcode, 1) * sum(map(_work, i.called)) for i in c.instructions)
