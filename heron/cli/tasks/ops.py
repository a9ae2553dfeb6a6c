"""The work of ``heron ops``."""

from __future__ import annotations

from typing import Any

from heron.cli import op_page
from heron.cli.common import print_json, print_table, print_text
from heron.hlo.ir.op import Op, all_ops, get
from heron.hlo.tools.op_examples import element_types, line
from heron.trace.summary import table


def run(name: str | None, markdown: bool, as_json: bool) -> None:
    """List the HLO ops that heron supports; with NAME, describe that op."""
    if markdown:
        print_text(op_page.markdown())
        return
    if name is not None:
        op = get(name)
        if as_json:
            print_json({**_facts(op), "runs_on": op_page.runs_on(op)})
        else:
            print_text(_text(op))
        return
    if as_json:
        print_json([_facts(op) for op in all_ops()])
        return
    rows = table("op", "operands", "attributes", "traits")
    for op in all_ops():
        rows.add_row(op.name, ", ".join(op.operands), ", ".join(op.attributes), ", ".join(_traits(op)))
    print_table(rows)


def _traits(op: Op) -> list[str]:
    return sorted(t.name.lower().replace("_", "-") for t in op.traits)


def _facts(op: Op) -> dict[str, Any]:
    return {
        "name": op.name,
        "operands": list(op.operands),
        "attributes": {
            key: {
                "kind": a.kind.name.lower(),
                "required": a.required,
                "default": op_page.default_text(a),
                "choices": list(a.choices),
            }
            for key, a in op.attributes.items()
        },
        "traits": sorted(t.name.lower() for t in op.traits),
        "meaning": op_page.meaning(op),
        "shape": op_page.shape_rule(op),
        "element_types": [t.name for t in element_types(op.name)],
        "example": line(op.name),
        "source": op.source,
    }


def _text(op: Op) -> str:
    lines = [f"{op.name}({', '.join(op.operands)})", "", op_page.meaning(op), ""]
    for key, a in op.attributes.items():
        choices = f", one of {', '.join(a.choices)}" if a.choices else ""
        default = op_page.default_text(a)
        lines.append(f"  {key}: {a.kind.value}, {default if a.required else f'default {default}'}{choices}")
    lines += [f"  {t.name.lower().replace('_', '-')}: {t.value}" for t in sorted(op.traits, key=lambda t: t.name)]
    lines += [
        f"  shape: {op_page.shape_rule(op)}",
        f"  element types: {op_page.types_text(element_types(op.name))}",
        f"  runs on: {op_page.runs_on_text(op) or 'nothing yet'}",
        f"  defined at {op.source}",
        "",
        "For example:",
    ]
    return "\n".join([*lines, *(f"  {text}" for text in line(op.name).split("\n"))])
