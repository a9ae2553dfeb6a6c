"""``heron passes``: what passes and pipelines there are."""

from __future__ import annotations

import dataclasses
import inspect

import click

from heron.cli.common import examples, json_option, print_json, print_table, print_text


@click.command(
    short_help="List passes and pipelines.", epilog=examples("heron passes", "heron passes cse", "heron passes cpu")
)
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List passes and named pipelines; with NAME, tell all about that one."""
    from heron.passes import registry
    from heron.trace.summary import table

    if name is not None and name in registry.pipelines():
        pipeline = registry.pipeline(name)
        names = [p.name for p in pipeline.flatten()]
        print_json({"pipeline": name, "passes": names}) if as_json else print_text(str(pipeline))
        return
    if name is not None:
        found = registry.find(name)
        options = {f.name: repr(f.default) for f in dataclasses.fields(found)}
        doc = inspect.getdoc(found) or ""
        if as_json:
            print_json({"pass": name, "doc": doc, "options": options})
            return
        given = "\n".join(f"  {key} = {value}" for key, value in options.items())
        print_text(f"{name}\n\n{doc}" + (f"\n\noptions:\n{given}" if given else ""))
        return
    passes = [(p.name, (inspect.getdoc(p) or "").partition("\n")[0]) for p in registry.all_passes()]
    if as_json:
        print_json({"passes": [{"name": n, "doc": d} for n, d in passes], "pipelines": registry.pipelines()})
        return
    rows = table("pass", "what it does")
    for row in passes:
        rows.add_row(*row)
    print_table(rows)
    click.echo(f"pipelines: {', '.join(registry.pipelines())}")
