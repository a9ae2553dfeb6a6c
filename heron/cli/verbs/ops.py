"""``heron ops``: the ops of the language, from their declarations."""

from __future__ import annotations

import inspect

import click

from heron.cli.common import examples, json_option, print_json, print_table, print_text


@click.command(short_help="List the HLO ops.", epilog=examples("heron ops", "heron ops clamp", "heron ops --json"))
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the HLO ops heron knows; with NAME, tell all about that one."""
    from heron.hlo import ops as _declarations  # noqa: F401  fills the registry
    from heron.hlo.op import Op, all_ops, get
    from heron.trace.summary import table

    def facts(op: Op) -> dict[str, object]:
        return {
            "name": op.name,
            "operands": list(op.operands),
            "attributes": {
                key: {"kind": a.kind.name.lower(), "required": a.required, "choices": list(a.choices)}
                for key, a in op.attributes.items()
            },
            "traits": sorted(t.name.lower() for t in op.traits),
            "doc": inspect.getdoc(type(op)) or "",
            "source": op.source,
        }

    if name is not None:
        op = get(name)
        if as_json:
            print_json(facts(op))
            return
        lines = [f"{op.name}({', '.join(op.operands)})"]
        for key, a in op.attributes.items():
            choices = f", one of {', '.join(a.choices)}" if a.choices else ""
            lines.append(f"  {key}: {a.kind.value}{', required' if a.required else ''}{choices}")
        lines += [f"  {t.name.lower().replace('_', '-')}: {t.value}" for t in sorted(op.traits, key=lambda t: t.name)]
        print_text("\n".join([*lines, f"  defined at {op.source}", "", inspect.getdoc(type(op)) or ""]).rstrip())
        return
    if as_json:
        print_json([facts(op) for op in all_ops()])
        return
    rows = table("op", "operands", "attributes", "traits")
    for op in all_ops():
        rows.add_row(
            op.name,
            ", ".join(op.operands),
            ", ".join(op.attributes),
            ", ".join(sorted(t.name.lower().replace("_", "-") for t in op.traits)),
        )
    print_table(rows)
