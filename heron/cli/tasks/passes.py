"""The work of ``heron passes``."""

from __future__ import annotations

import inspect

import click

from heron.cli import pass_page
from heron.cli.common import print_json, print_table, print_text
from heron.passes.framework import registry
from heron.passes.framework.loading import loaded
from heron.trace.summary import table


def run(name: str | None, pipeline: str | None, loads: tuple[str, ...], as_page: bool, as_json: bool) -> None:
    """List passes and named pipelines; with NAME, describe that one."""
    with loaded(loads):
        if as_page:
            print_text(pass_page.markdown())
        elif pipeline is not None or name in registry.pipelines():
            _tell_pipeline(pipeline or name or "", as_json)
        elif name is not None:
            _tell_pass(name, as_json)
        else:
            _list(as_json)


def _tell_pipeline(name: str, as_json: bool) -> None:
    pipeline = registry.pipeline(name)
    if as_json:
        print_json({"pipeline": name, "passes": [p.name for p in pipeline.flatten()]})
    else:
        print_text(str(pipeline))


def _tell_pass(name: str, as_json: bool) -> None:
    found = registry.find(name)
    doc, options, used = inspect.getdoc(found) or "", pass_page.options(found), pass_page.used_in(name)
    orders = [pass_page.order_text(c, name).replace("`", "") for c in pass_page.orders(name)]
    if as_json:
        print_json({"pass": name, "doc": doc, "options": options, "pipelines": used, "order": orders})
        return
    parts = [name, doc]
    if options:
        parts.append("options:\n" + "\n".join(f"  {key} = {value}" for key, value in options.items()))
    if used:
        parts.append("pipelines: " + ", ".join(used))
    if orders:
        parts.append("order:\n" + "\n".join(f"  {order}" for order in orders))
    print_text("\n\n".join(parts))


def _list(as_json: bool) -> None:
    passes = [(p.name, (inspect.getdoc(p) or "").partition("\n")[0]) for p in registry.all_passes()]
    if as_json:
        print_json({"passes": [{"name": n, "doc": d} for n, d in passes], "pipelines": registry.pipelines()})
        return
    rows = table("pass", "what it does")
    for row in passes:
        rows.add_row(*row)
    print_table(rows)
    click.echo(f"pipelines: {', '.join(registry.pipelines())}")
