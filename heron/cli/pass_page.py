"""Facts about a pass, from its class and the pipelines, for `heron passes` and docs/reference/passes.md."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from itertools import groupby

from heron.passes.framework import registry
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.docs import doc_of
from heron.passes.framework.pipeline import Fixpoint, Pipeline

_TITLES = {
    "simplify": "Simplifying",
    "expand": "Expanding",
    "control_flow": "Control flow",
    "precision": "Precision",
    "dynamic": "Dynamic shapes",
    "layout": "Layouts",
    "calls": "Libraries",
    "fusion": "Fusion",
    "copies": "Copies and buffers",
    "collectives": "Collectives",
    "schedule": "Schedules",
    "tools": "Tools",
    "on_request": "On request: passes of no pipeline",
}
#: the title of passes from elsewhere, such as a user's file
_OTHERS = "Others"


def theme(cls: type[Pass]) -> str:
    """The folder of a pass's file; empty for a pass from outside heron."""
    parts = cls.__module__.split(".")
    return parts[2] if parts[:2] == ["heron", "passes"] and len(parts) > 3 else ""


def options(cls: type[Pass]) -> dict[str, str]:
    """The pass's options and their defaults."""
    return {f.name: repr(f.default) for f in dataclasses.fields(cls) if not callable(f.default)}


def used_in(name: str) -> list[str]:
    """The pipelines that contain a pass directly or in a loop, not those that contain such a pipeline."""
    return [n for n in registry.pipelines() if any(step.name == name for step in _own_steps(registry.pipeline(n)))]


def _own_steps(pipeline: Pipeline) -> Iterator[Pass]:
    for step in pipeline.steps:
        if isinstance(step, Fixpoint):
            yield from _own_steps(step)
        elif not isinstance(step, Pipeline):
            yield step


def orders(name: str) -> list[Constraint]:
    """The ordering constraints on a pass: its own, and those of other passes."""
    every = dict.fromkeys(c for cls in registry.all_passes() for c in cls.constraints)
    return [c for c in every if name in (c.before, c.after)]


def order_text(c: Constraint, name: str) -> str:
    """A constraint as a sentence, seen from one of its two passes."""
    where, other = ("before", c.after) if c.before == name else ("after", c.before)
    return f"{where} `{other}`{', always' if c.all_runs else ''}: {c.reason}"


def markdown() -> str:
    """The page docs/reference/passes.md."""
    every = registry.all_passes()
    parts = [
        f"""# Passes

All {len(every)} passes, by `heron passes --markdown`. Text and example of a pass are its docstring, which runs as a
test. In an example, a typed operand that no line defines is a parameter; the text below the arrow is the result.
[add-a-pass.md](../change/add-a-pass.md) says how to write a pass,
[add-a-rule.md](../change/add-a-rule.md) how to write a rewrite rule.
"""
    ]
    order = {name: n for n, name in enumerate(_TITLES)}
    by_theme = sorted(every, key=lambda c: (order.get(theme(c), len(order)), c.name))
    parts.append(_pipelines())
    for title, group in groupby(by_theme, key=lambda c: _TITLES.get(theme(c), _OTHERS)):
        parts.append(f"## {title}\n")
        parts += [_section(cls) for cls in group]
    return "\n".join(parts)


def _pipelines() -> str:
    whole = [name for name in ("cpu", "gpu") if name in registry.pipelines()]
    blocks = "\n".join(f"```\n{registry.pipeline(name)}\n```\n" for name in whole)
    names = "\n".join(f"- `{n}`: {_first_line(n)}" for n in registry.pipelines())
    return f"""## Pipelines

`heron opt FILE --pipeline NAME` runs one of

{names}

Their lists, with the reasons for the order, are in `heron/passes/pipelines.py` and `heron/backends/*/pipeline.py`. From
a program as given to what buffers and code are made for:

{blocks}"""


def _first_line(pipeline: str) -> str:
    text = registry.about_pipeline(pipeline).partition("\n")[0].removesuffix(".")
    return text[:1].lower() + text[1:]


def _section(cls: type[Pass]) -> str:
    doc = doc_of(cls)
    lines = [f"### {cls.name}\n", _escaped(doc.prose) + "\n"]
    if doc.short:
        lines.append(f"```\n{doc.short}\n```\n")
    if given := options(cls):
        lines.append("Options: " + ", ".join(f"`{n}={v}`" for n, v in given.items()) + ".\n")
    facts = [order_text(c, cls.name) for c in orders(cls.name)]
    if used := used_in(cls.name):
        facts.insert(0, "in " + ", ".join(f"`{n}`" for n in used))
    if facts:
        lines.append("\n".join(f"- {fact}" for fact in facts) + "\n")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Docstring prose as Markdown: double backquotes become single ones."""
    return re.sub(r"``([^`]+)``", r"`\1`", text)
