"""Facts about an op, from its declaration and from trying its example, for `heron ops` and docs/reference/ops.md."""

from __future__ import annotations

import inspect
from itertools import groupby
from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.options import Options
from heron.targets import get
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.hlo.ir.op import Attr, Op
    from heron.hlo.ir.types import ElementType

#: one target of each kind
TARGETS = ("cpu", "sim:sm_90", "sm_90")
_KINDS = {"signed": "signed integers", "unsigned": "unsigned integers", "float": "floats", "complex": "complex numbers"}


def meaning(op: Op) -> str:
    """The docstring without the sentence on the shape."""
    return "\n\n".join(p for p in _paragraphs(type(op)) if not p.startswith("Shape:"))


def shape_rule(op: Op) -> str:
    """The sentence on the shape, the op's own or its family's."""
    found = (p for c in type(op).__mro__ for p in _paragraphs(c) if p.startswith("Shape:"))
    return next(found, "").removeprefix("Shape:").strip()


def _paragraphs(of: type) -> list[str]:
    doc = of.__dict__.get("__doc__")
    return [" ".join(p.split()) for p in inspect.cleandoc(doc).split("\n\n")] if doc else []


def default_text(a: Attr) -> str:
    """The text of an attribute's default."""
    if a.required:
        return "required"
    if a.default is None or a.default == () or a.default == "":
        return "none"
    return str(a.default).lower() if isinstance(a.default, bool) else str(a.default)


def types_text(found: list[ElementType]) -> str:
    """Element types in words: whole kinds by their names."""
    from heron.hlo.ir.types import ALL

    arrays = [t for t in ALL if t.byte_size]
    if not found:
        return "those of the example"
    if set(found) == set(arrays):
        return "all"
    parts: list[str] = []
    for kind, group in groupby(arrays, lambda t: t.kind):
        of_kind = list(group)
        here = [t for t in of_kind if t in found]
        left_out = [t for t in of_kind if t not in found]
        if not here:
            continue
        if kind == "pred":
            parts.append("pred")
        elif not left_out:
            parts.append(_KINDS[kind])
        elif len(left_out) < len(here):
            parts.append(f"{_KINDS[kind]} but {', '.join(t.name for t in left_out)}")
        else:
            parts.append(", ".join(t.name for t in here))
    return "; ".join(parts)


def runs_on(op: Op) -> dict[str, str]:
    """The implementation of the op on the evaluator and on each target that compiles its example."""
    from heron.backends.compiler import Compilation
    from heron.hlo.ir.op import Op
    from heron.hlo.text import parse
    from heron.hlo.tools.op_examples import usual_program
    from heron.runtime.thunks import walk

    found = {"evaluator": ""} if type(op).evaluate is not Op.evaluate or op.name == "parameter" else {}
    module = parse(usual_program(op.name))
    for name in TARGETS:
        try:
            thunks, _ = Compilation(module, get(name), Options(), Trace()).lowered
        except HeronError:
            continue
        kinds = sorted({t.kind for t in walk(thunks)} - {"copy", "kernel", "while", "conditional"})
        found[name] = ", ".join(kinds)
    return found


def runs_on_text(op: Op) -> str:
    """The same in words: `cpu (gemm)`."""
    return ", ".join(f"{name} ({by})" if by else name for name, by in runs_on(op).items())


def markdown() -> str:
    """docs/reference/ops.md: every op, by name."""
    from heron.hlo.ir.op import all_ops

    return _HEAD + "\n".join(_section(op) for op in all_ops())


_HEAD = """# Ops

Written by `heron ops --markdown` from the declarations in `heron/hlo/ops`, and held true by a test. Every op has an
example: what it returns, its operands with their types, its attributes. In it `T` stands for any of the element types
listed, `R` for that of its real part, `C` for that of complex numbers made of it, `U` for unsigned integers of its
width. The list is what the op's shape rule accepts, and "runs on" is where the example compiles (with the library that
computes it, if one does); a target may still refuse other types or attributes, with a located error.

"""


def _section(op: Op) -> str:
    from heron.hlo.tools.op_examples import element_types, line

    lines = [f"## {op.name}", "", meaning(op), "", "```", line(op.name), "```", ""]
    lines.append(f"- shape: {shape_rule(op)}")
    if op.operands:
        lines.append(f"- operands: {', '.join(_operand(n) for n in op.operands)}")
    for name, a in op.attributes.items():
        choices = f", one of {', '.join(a.choices)}" if a.choices else ""
        lines.append(f"- `{name}`: {a.kind.name.lower().replace('_', ' ')}, {_default(a)}{choices}")
    lines.append(f"- element types: {types_text(element_types(op.name))}")
    if op.traits:
        lines.append(f"- traits: {', '.join(sorted(t.name.lower().replace('_', '-') for t in op.traits))}")
    lines.append(f"- runs on: {runs_on_text(op) or 'nothing yet'}")
    lines.append(f"- defined at <{op.source}>")
    return "\n".join([*lines, ""])


def _operand(name: str) -> str:
    """``operands*`` and ``x?`` in words."""
    if name.endswith("*"):
        return f"any number of {name[:-1]}"
    return f"{name[:-1]} (may be left out)" if name.endswith("?") else name


def _default(a: Attr) -> str:
    text = default_text(a)
    return text if a.required else f"default {text}"
