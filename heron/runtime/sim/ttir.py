"""Reads the text of block kernels: what Triton would get is what the simulated GPU runs.

The text is what `codegen/triton` writes: one op a line, every value named once, types at the end of a line.
"""

from __future__ import annotations

import re
from dataclasses import field

import ml_dtypes
import numpy as np

from heron.records import dataclass

_FLOATS = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
}
_OP = re.compile(r'(?:(?P<results>%\w+(?:, %\w+)*) = )?"?(?P<name>[a-z_]+\.[\w.]+)"?(?P<rest>.*)')
_VALUE = re.compile(r"%\w+")
_ATTRIBUTE = re.compile(r'(\w+) = (?:array<i32: ([^>]*)>|"([^"]*)"|([^,{}>]+))')
_KERNEL = re.compile(r"tt\.func public @([\w.$-]+)\((.*)\) \{")
_ARGUMENT = re.compile(r"(%\w+): !tt\.ptr<(\w+)>")


@dataclass(slots=True)
class Op:
    """``operands`` and ``results`` are names of values. ``shape`` and ``element`` are the last result's; ``text`` is
    what stands before the types, ``attributes`` what stands in braces."""

    name: str
    operands: list[str]
    results: list[str]
    element: str
    shape: tuple[int, ...]
    text: str
    attributes: dict[str, str]
    body: Body | None = None

    @property
    def dtype(self) -> np.dtype:
        """The type of the result's elements, as NumPy has it."""
        return dtype_of(self.element)

    def number(self, name: str) -> int:
        """An attribute such as ``axis = 1 : i32``."""
        return int(self.attributes[name])


@dataclass(slots=True)
class Body:
    """The ops of a kernel, a loop or a combination, with the values it is given."""

    arguments: list[str] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Text:
    """A kernel: its name, the element type of each argument, its ops."""

    name: str
    types: tuple[str, ...]
    body: Body


def read(text: str) -> Text:
    """The kernel in a text. Raises ValueError for what is none."""
    found: Text | None = None
    stack: list[Body] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if match := _KERNEL.match(line):
            arguments = _ARGUMENT.findall(match[2])
            stack = [Body([name for name, _ in arguments])]
            found = Text(match[1], tuple(t for _, t in arguments), stack[0])
        elif line.startswith("^bb0("):
            stack[-1].arguments = _VALUE.findall(line)
        elif line.startswith("})"):  # the types of a combination stand behind it
            stack.pop()
            stack[-1].ops[-1].element, stack[-1].ops[-1].shape = type_of(line)
        elif line.startswith("}") and not line.startswith("})") and stack:  # what a loop is told stands behind it
            stack.pop()
        elif line and line not in ("}", "builtin.module {", "module {"):
            _read_op(line, number, stack)
    if found is None:
        raise ValueError("there is no kernel in the text")
    return found


def _read_op(line: str, number: int, stack: list[Body]) -> None:
    match = _OP.fullmatch(line)
    if match is None or not stack:
        raise ValueError(f"line {number} is no op: {line[:80]}")
    results, rest = _VALUE.findall(match["results"] or ""), match["rest"]
    opens = rest.endswith("{") or rest.endswith("({")
    text, _, types = rest.partition(" : ") if match["name"] == "arith.constant" else rest.rpartition(" : ")
    operands, body = _VALUE.findall(text), Body() if opens else None
    if match["name"] == "scf.for":
        operands, body = _loop(rest)
    if match["name"] == "tt.reduce":
        operands = _VALUE.findall(rest)
    element, shape = type_of(types) if not opens else ("", ())
    attributes = {m[0]: next((x for x in m[1:] if x), "").partition(" : ")[0].strip() for m in _ATTRIBUTE.findall(rest)}
    stack[-1].ops.append(Op(match["name"], operands, results, element, shape, text.strip(), attributes, body))
    if body is not None:
        stack.append(body)


def _loop(rest: str) -> tuple[list[str], Body]:
    """``%k = %lo to %hi step %by iter_args(%a = %b, …)``: bounds and what the loop begins with, and its arguments."""
    variable, lo, hi, by, *carried = _VALUE.findall(rest)
    return [lo, hi, by, *carried[1::2]], Body([variable, *carried[::2]])


def type_of(text: str) -> tuple[str, tuple[int, ...]]:
    """Element type and shape of the last type in a text: of pointers, what they point to."""
    last = re.split(r" -> | to |, | \* |: ", text)[-1].strip("() {")
    if last.startswith("<tensor<"):  # of a descriptor, its tile
        last = last[1:-1]
    if last.startswith("tensor<"):
        last = last[len("tensor<") : -1]
    *dims, element = last.split("x") if last[:1].isdigit() else [last]
    return element.removeprefix("!tt.ptr<").rstrip(">"), tuple(map(int, dims))


def dtype_of(element: str) -> np.dtype:
    """The NumPy type of an element. Raises ValueError for one that no kernel has."""
    if element in _FLOATS:
        return np.dtype(_FLOATS[element])
    if element == "i1":
        return np.dtype(bool)
    if re.fullmatch(r"i(8|16|32|64)", element):
        return np.dtype(f"i{int(element[1:]) // 8}")
    raise ValueError(f"'{element}' is no type of a block kernel")


def constant(op: Op) -> np.ndarray:
    """The value of an ``arith.constant``: one element, or all of them where not all are written alike.

    They stand in decimal, in hexadecimal bits, or as truths. NaNs are written one by one, though all are the same, and
    more than a hundred of them as one string with the bytes of the whole array.
    """
    if op.text.startswith('dense<"0x'):
        data = bytes.fromhex(op.text.removeprefix('dense<"0x').rstrip('">'))
        return np.frombuffer(data, op.dtype).reshape(op.shape)
    texts = re.findall(r"[^\[\],\s]+", op.text.removeprefix("dense<").rstrip(">"))
    if len(set(texts)) == 1:
        return np.array([_scalar(texts[0], op)])
    return np.array([_scalar(text, op) for text in texts]).reshape(op.shape)


def _scalar(text: str, op: Op) -> np.ndarray | np.generic:
    if text in ("true", "false"):
        return np.bool_(text == "true")
    if text.lower().startswith("0x"):
        return np.array(int(text, 16), f"u{op.dtype.itemsize}").view(op.dtype)
    return np.array(float(text) if op.element in _FLOATS else int(text)).astype(op.dtype)
