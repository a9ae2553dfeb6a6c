"""Random programs that are hard on buffers: loops with shuffled state, branches, calls, in-place updates, tuples, donated
parameters."""

from __future__ import annotations

from random import Random

VECTOR = "f32[4]{0}"


class Writer:
    """Writes one module; `rng` makes all choices."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.computations: list[str] = []
        self.count = 0

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}.{self.count}"

    def module(self) -> str:
        rng = self.rng
        lines = [f"  p{n} = {VECTOR} parameter({n})" for n in range(rng.randint(1, 3))]
        values = [f"p{n}" for n in range(len(lines))]
        k = self.name("k")
        lines.append(f"  {k} = s32[] parameter({len(values)})")
        values = self.steps(lines, values, k, depth=2, count=rng.randint(2, 8))
        outs = [rng.choice(values) for _ in range(rng.randint(1, 4))]
        types = ", ".join([VECTOR] * len(outs))
        lines.append(f"  ROOT out = ({types}) tuple({', '.join(outs)})")
        body = "\n".join(lines)
        blocks = "\n\n".join(self.computations)
        header = self.donations(sum(" parameter(" in line for line in lines) - 1, len(outs))
        return f"HloModule random{header}\n\n{blocks}\n\nENTRY main {{\n{body}\n}}\n"

    def donations(self, parameters: int, outputs: int) -> str:
        """What the header says of parameters the caller gives up: some take the place of an output, some no place."""
        rng = self.rng
        free = rng.sample(range(parameters), rng.randint(0, parameters))
        places = rng.sample(range(outputs), rng.randint(0, min(outputs, len(free))))
        aliases = ", ".join(f"{{{n}}}: ({free.pop()}, {{}}, {rng.choice(['may', 'must'])}-alias)" for n in places)
        donors = ", ".join(f"({n}, {{}})" for n in free)
        return (f", input_output_alias={{ {aliases} }}" if aliases else "") + (
            f", buffer_donor={{ {donors} }}" if donors else ""
        )

    def steps(self, lines: list[str], values: list[str], k: str, depth: int, count: int) -> list[str]:
        """Append `count` random steps; all values there are then. `k` is a counter in scope."""
        values = list(values)
        for _ in range(count):
            kinds = ["unary", "binary", "binary", "turn", "update", "scatter", "constant", "view"]
            if depth:
                kinds += ["loop", "loop", "branch", "call"]
            made = getattr(self, self.rng.choice(kinds))(lines, values, k, depth)
            values += made
        return values

    def unary(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        n = self.name("u")
        lines.append(f"  {n} = {VECTOR} {self.rng.choice(['negate', 'tanh', 'copy'])}({self.rng.choice(values)})")
        return [n]

    def binary(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        n, op = self.name("b"), self.rng.choice(["add", "subtract", "maximum"])
        lines.append(f"  {n} = {VECTOR} {op}({self.rng.choice(values)}, {self.rng.choice(values)})")
        return [n]

    def turn(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        """An op that cannot be computed in place."""
        n = self.name("r")
        lines.append(f"  {n} = {VECTOR} reverse({self.rng.choice(values)}), dimensions={{0}}")
        return [n]

    def call(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        rng, name, pair = self.rng, self.name("callee"), f"({VECTOR}, {VECTOR})"
        mine = [self.name("q") for _ in range(2)]
        counter = self.name("k")
        inner = [f"  {q} = {VECTOR} parameter({n})" for n, q in enumerate(mine)]
        inner.append(f"  {counter} = s32[] parameter(2)")
        after = self.steps(inner, mine, counter, depth - 1, rng.randint(0, 4))
        inner.append(f"  ROOT {self.name('r')} = {pair} tuple({rng.choice(after)}, {rng.choice(after)})")
        self.computations.append(f"{name} {{\n" + "\n".join(inner) + "\n}")
        made: list[str] = []
        for _ in range(rng.randint(1, 2)):  # called twice, it needs two copies
            call, parts = self.name("call"), [self.name("g"), self.name("g")]
            lines.append(f"  {call} = {pair} call({rng.choice(values)}, {rng.choice(values)}, {k}), to_apply={name}")
            lines += [f"  {g} = {VECTOR} get-tuple-element({call}), index={n}" for n, g in enumerate(parts)]
            made += parts
        return made

    def constant(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        n = self.name("c")
        lines.append(f"  {n} = {VECTOR} constant({{1, 2, 3, {self.rng.randint(4, 9)}}})")
        return [n]

    def view(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        a, b = self.name("v"), self.name("v")
        lines.append(f"  {a} = f32[2,2]{{1,0}} bitcast({self.rng.choice(values)})")
        lines.append(f"  {b} = {VECTOR} bitcast({a})")
        return [b]

    def update(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        piece, n, rng = self.name("s"), self.name("d"), self.rng
        start = rng.randint(0, 2)
        lines.append(f"  {piece} = f32[2]{{0}} slice({rng.choice(values)}), slice={{[{start}:{start + 2}]}}")
        lines.append(f"  {n} = {VECTOR} dynamic-update-slice({rng.choice(values)}, {piece}, {k})")
        return [n]

    def scatter(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        if not any(c.startswith("plus ") for c in self.computations):
            self.computations.insert(
                0, "plus {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}"
            )
        where, piece, n, rng = self.name("w"), self.name("s"), self.name("t"), self.rng
        lines.append(f"  {where} = s32[2,1]{{1,0}} constant({{ {{{rng.randint(0, 3)}}}, {{{rng.randint(0, 3)}}} }})")
        lines.append(f"  {piece} = f32[2]{{0}} slice({rng.choice(values)}), slice={{[1:3]}}")
        lines.append(
            f"  {n} = {VECTOR} scatter({rng.choice(values)}, {where}, {piece}), update_window_dims={{}}, "
            "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=plus"
        )
        return [n]

    def loop(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        rng = self.rng
        size = rng.randint(1, 4)
        state = "(s32[], " + ", ".join([VECTOR] * size) + ")"
        body, condition = self.name("body"), self.name("condition")
        self._body(body, state, size, depth)
        arg, i, limit = self.name("q"), self.name("i"), self.name("l")
        self.computations.append(
            f"{condition} {{\n  {arg} = {state} parameter(0)\n"
            f"  {i} = s32[] get-tuple-element({arg}), index=0\n"
            f"  {limit} = s32[] constant({rng.randint(0, 4)})\n"
            f"  ROOT {self.name('lt')} = pred[] compare({i}, {limit}), direction=LT\n}}"
        )
        init, zero, loop = self.name("init"), self.name("zero"), self.name("loop")
        lines.append(f"  {zero} = s32[] constant(0)")
        starts = ", ".join([zero, *(rng.choice(values) for _ in range(size))])
        lines.append(f"  {init} = {state} tuple({starts})")
        lines.append(f"  {loop} = {state} while({init}), condition={condition}, body={body}")
        made = []
        for n in range(size):
            made.append(self.name("g"))
            lines.append(f"  {made[-1]} = {VECTOR} get-tuple-element({loop}), index={n + 1}")
        return made

    def _body(self, name: str, state: str, size: int, depth: int) -> None:
        rng = self.rng
        arg, i, one, more = self.name("q"), self.name("i"), self.name("one"), self.name("more")
        lines = [f"  {arg} = {state} parameter(0)", f"  {i} = s32[] get-tuple-element({arg}), index=0"]
        values = []
        for n in range(size):
            values.append(self.name("g"))
            lines.append(f"  {values[-1]} = {VECTOR} get-tuple-element({arg}), index={n + 1}")
        after = self.steps(lines, values, i, depth - 1, rng.randint(0, 4))
        lines.append(f"  {one} = s32[] constant(1)")
        lines.append(f"  {more} = s32[] add({i}, {one})")
        new = [rng.choice(after) for _ in range(size)]
        lines.append(f"  ROOT {self.name('next')} = {state} tuple({', '.join([more, *new])})")
        self.computations.append(f"{name} {{\n" + "\n".join(lines) + "\n}")

    def branch(self, lines: list[str], values: list[str], k: str, depth: int) -> list[str]:
        rng = self.rng
        names = [self.name("branch") for _ in range(rng.randint(2, 3))]
        pair = f"({VECTOR}, {VECTOR})"
        for name in names:
            arg, zero = self.name("q"), self.name("zero")
            inner = [f"  {arg} = {pair} parameter(0)", f"  {zero} = s32[] constant({rng.randint(0, 2)})"]
            mine = []
            for n in range(2):
                mine.append(self.name("g"))
                inner.append(f"  {mine[-1]} = {VECTOR} get-tuple-element({arg}), index={n}")
            after = self.steps(inner, mine, zero, depth - 1, rng.randint(0, 3))
            inner.append(f"  ROOT {self.name('r')} = {pair} tuple({rng.choice(after)}, {rng.choice(after)})")
            self.computations.append(f"{name} {{\n" + "\n".join(inner) + "\n}")
        arguments = []
        for _ in names:
            arguments.append(self.name("t"))
            lines.append(f"  {arguments[-1]} = {pair} tuple({rng.choice(values)}, {rng.choice(values)})")
        chosen = self.name("cond")
        lines.append(
            f"  {chosen} = {pair} conditional({', '.join([k, *arguments])}), branch_computations={{{', '.join(names)}}}"
        )
        made = []
        for n in range(2):
            made.append(self.name("g"))
            lines.append(f"  {made[-1]} = {VECTOR} get-tuple-element({chosen}), index={n}")
        return made


def random_program(rng: Random) -> str:
    """HLO text of a module with f32[4] parameters and one s32 scalar, and a tuple of f32[4] as result."""
    return Writer(rng).module()
