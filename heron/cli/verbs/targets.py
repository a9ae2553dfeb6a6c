"""``heron targets``: the machines programs can be compiled for."""

from __future__ import annotations

from typing import Any

import click

from heron import targets
from heron.cli.common import examples, json_option, print_json, print_table
from heron.trace.summary import seconds, size, table


@click.command(
    short_help="List the machines to compile for.",
    epilog=examples("heron targets", "heron targets sm_90", "heron targets --json"),
)
@click.argument("name", required=False)
@json_option
def command(name: str | None, as_json: bool) -> None:
    """List the targets; with NAME, show that target's figures."""

    if name is not None:
        facts = targets.get(name).to_json()
        if as_json:
            print_json(facts)
            return
        rows = table("fact", "value")
        for key, value in facts.items():
            if value in (0, False, "", (), None):
                continue
            if key == "flops":
                value = ", ".join(f"{t} {rate / 1e12:g} T" for t, rate in value.items() if rate)
            elif key == "links":
                value = "; ".join(map(_link, value))
            elif key.endswith(("_bytes", "_bandwidth")) or "_bytes_" in key:
                value = f"{value:,} ({size(value)})"
            elif isinstance(value, tuple):
                value = ", ".join(map(str, value))
            rows.add_row(key.replace("_", " "), str(value))
        print_table(rows)
        return
    if as_json:
        print_json([t.to_json() for t in targets.all_targets()])
        return
    rows = table("target", "cores>", "memory>", "GB/s>", "f32 TFLOPS>", "machine")
    for t in targets.all_targets():
        if t.sim:
            continue
        what = f"this machine's GPU; without one, {t.machine}" if t.name == "cuda" else t.description
        rate = f"{t.flops_of('f32') / 1e12:.2f}"
        rows.add_row(t.name, str(t.cores), size(t.memory_bytes), f"{t.memory_bandwidth / 1e9:.0f}", rate, what)
    print_table(rows)
    click.echo("sim:NAME runs the kernels of GPU NAME on the CPU, e.g. sim:sm_90")


def _link(facts: dict[str, Any]) -> str:
    reach = f"{facts['devices']} devices" if facts["devices"] else "all devices"
    return f"{facts['name']}: {facts['bandwidth'] / 1e9:g} GB/s, {seconds(facts['seconds'])}, {reach}"
