"""A fusion being written: parameters with their values, the lines of its body, its outputs."""

from __future__ import annotations

import re

import numpy as np

from heron.hlo import text
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType
from heron.hlo.verifier import verify
from tests.codegen.suite.ops import Op, shape_text

Dims = tuple[int, ...]


class Program:
    """One fusion of many outputs; what they are for is in `labels`."""

    def __init__(self) -> None:
        self.labels: list[Op] = []
        self._parameters: dict[str, tuple[str, np.ndarray]] = {}
        self._body: list[str] = []
        self._outputs: list[tuple[str, str]] = []
        self._computations: dict[str, str] = {}

    def parameter(self, t: ElementType, dims: Dims, values: np.ndarray) -> str:
        """A new parameter, its values repeated or cut to fill it; its name. It is left out when nothing reads it."""
        name = f"p{len(self._parameters)}"
        self._parameters[name] = shape_text(t, dims), np.resize(values, dims).astype(t.dtype, copy=False)
        return name

    def _read(self) -> list[str]:
        """The parameters something reads."""
        words = set(re.findall(r"\bp\d+\b", "\n".join([*self._body, *(n for n, _ in self._outputs)])))
        return [name for name in self._parameters if name in words]

    @property
    def inputs(self) -> list[np.ndarray]:
        """The fusion's operands."""
        return [self._parameters[name][1] for name in self._read()]

    def line(self, t: ElementType, dims: Dims, expression: str) -> str:
        """A new instruction; its name."""
        name = f"v{len(self._body)}"
        self._body.append(f"{name} = {shape_text(t, dims)} {expression}")
        return name

    def op(self, op: Op, t: ElementType, dims: Dims, operands: tuple[str, ...]) -> str:
        """An op of the table on operands of type `t`; its name."""
        expression = op.expression.replace("%d", ",".join(map(str, range(len(dims)))))
        if "%w" in expression:
            expression = expression.replace(
                "%w", self.line(types.PRED, dims, f"compare({operands[1]}, {operands[2]}), direction=NE")
            )
        if "%u" in expression:
            random = types.by_name(f"u{t.bits}")
            expression = expression.replace("%u", self.line(random, dims, f"bitcast-convert({operands[1]})"))
        if "to_apply=scalar" in expression:
            expression = expression.replace("scalar", self.computation("scalar", t, "maximum", "add"))
        for number, operand in enumerate(operands):
            expression = expression.replace(f"%{number}", operand)
        return self.line(op.result_type(t), dims, expression)

    def output(self, op: Op, name: str, t: ElementType, dims: Dims) -> None:
        """`name` is an output, one that shows `op`."""
        self._outputs.append((name, shape_text(t, dims)))
        self.labels.append(op)

    def computation(self, kind: str, t: ElementType, *opcodes: str) -> str:
        """A computation of two scalars: the opcodes one after the other, each on the value so far and the first.

        A computation `chosen` compares them."""
        name = f"{kind}_{'_'.join(opcodes)}_{t.name}".replace("-", "_")
        lines = [f"a = {t.name}[] parameter(0)", f"b = {t.name}[] parameter(1)"]
        value = "b"
        if kind == "chosen":
            lines.append(f"ROOT c = pred[] compare(a, b), direction={opcodes[0]}")
            opcodes = ()
        for n, opcode in enumerate(opcodes):
            root = "ROOT " if n == len(opcodes) - 1 else ""
            lines.append(f"{root}c{n} = {t.name}[] {opcode}(a, {value})")
            value = f"c{n}"
        self._computations[name] = f"{name} {{\n" + "\n".join(lines) + "\n}"
        return name

    def later(self, t: ElementType) -> str:
        """A computation of two pairs (key, value): the one with the larger key."""
        name = f"later_{t.name}"
        names = ("a", "x", "b", "y")
        pair = ("s32", t.name) * 2
        lines = [f"{n} = {k}[] parameter({at})" for at, (n, k) in enumerate(zip(names, pair, strict=True))]
        lines.append("first = pred[] compare(a, b), direction=GE")
        lines.append("k = s32[] select(first, a, b)")
        lines.append(f"v = {t.name}[] select(first, x, y)")
        lines.append(f"ROOT r = (s32[], {t.name}[]) tuple(k, v)")
        self._computations[name] = f"{name} {{\n" + "\n".join(lines) + "\n}"
        return name

    def raw(self, line: str) -> str:
        """A new instruction from a text with its shape, for tuple shapes; its name."""
        name = f"v{len(self._body)}"
        self._body.append(f"{name} = {line}")
        return name

    def text(self) -> str:
        """The module."""
        shapes, names = [s for _, s in self._outputs], [n for n, _ in self._outputs]
        result = f"({', '.join(shapes)})"
        read = self._read()
        parameters = [f"{p} = {self._parameters[p][0]} parameter({n})" for n, p in enumerate(read)]
        return "\n".join([
            "HloModule m", *self._computations.values(), "f {", *parameters, *self._body,
            f"ROOT t = {result} tuple({', '.join(names)})", "}", "ENTRY e {", *parameters,
            f"ROOT r = {result} fusion({', '.join(read)}), kind=kLoop, calls=f", "}", "",
        ])  # fmt: skip

    def root(self) -> Instruction:
        """The fusion. Raises what parser and verifier do: not every op is legal on every type."""
        module = text.parse(self.text())
        verify(module)
        return module.entry.root
