"""The work of ``heron shard``."""

from __future__ import annotations

from heron import files, targets
from heron.analysis.sharding.reasons import Step
from heron.cli.auto_shard import memory_of_text
from heron.cli.common import load_module, print_json, print_table, print_text
from heron.cli.progress import at_step, progress
from heron.cli.sharding_report import ShardingReport, Value
from heron.cli.spread import Spread
from heron.errors import HeronError
from heron.targets import Target
from heron.trace import Trace
from heron.trace.graph.boxes import graph_of
from heron.trace.graph.drawing import html, svg
from heron.trace.graph.tiles import Tiles
from heron.trace.summary import seconds, size, table

#: of the axes of a mesh, in order
_COLOURS = ("#c1121f", "#1d6fb8", "#2a9134", "#e09f00", "#7b2cbf", "#00889b", "#8d5524", "#6c757d")


def run(
    file: str,
    mesh: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    auto: bool,
    memory: str | None,
    top: int,
    everything: bool,
    why: str | None,
    trial: bool,
    tiles: str | None,
    draw: str | None,
    target: str,
    as_json: bool,
) -> None:
    """Find a sharding for every value of FILE, which is sharded or is given shardings by --mesh, --in and --out."""
    if draw is not None and not draw.endswith((".svg", ".html")):
        raise HeronError("CLI034", f"'{draw}' is not a picture", hint="--draw OUT.svg or OUT.html")
    machine = targets.get(target)
    limit = memory_of_text(memory) if auto or memory is not None else None
    module = load_module(file, target)
    trace = Trace(module.name, target)
    with progress(trace, f"sharding {module.name}"):
        report = ShardingReport.of(module, Spread(mesh, inputs, outputs, limit), machine, trace)
        if tiles is None and draw is None and (why is None or trial):
            report.partition(machine, trace)
    if why is not None:
        answer = report.why(why)
        if trial:
            with at_step(f"trying other shardings of {why}"):
                answer.lines.extend(_savings(report, why, machine))
        print_json(answer.to_json()) if as_json else print_text(
            "\n".join([answer.text, *(f"  {line}" for line in answer.lines)])
        )
        return
    if tiles is not None:
        _tiles(report, report.value(tiles), draw)
        return
    if draw is not None:
        _draw(report, draw)
        return
    if as_json:
        print_json(report.to_json())
        return
    _show(report, top, everything)


def _savings(report: ShardingReport, name: str, machine: Target) -> list[str]:
    """Sentences about the changes of one axis that save the most."""
    before = report.partitioned_bytes(machine)
    found = report.savings(name, machine)
    if not found:
        return [f"no change of one axis sends fewer bytes than {before:,.0f}"]
    return [f"constrained to {text} the program sends {sent:,.0f} bytes, not {before:,.0f}" for text, sent in found[:3]]


def _tiles(report: ShardingReport, value: Value, draw: str | None) -> None:
    picture = Tiles.of(value.name, value.shape, value.sharding, report.mesh)
    if draw is None:
        print_text(picture.text())
        return
    files.write_text(draw, picture.svg())


def _draw(report: ShardingReport, draw: str) -> None:
    graph = graph_of(report.module.entry)
    values: dict[object, list[Value]] = {}
    for value in report.values():
        values.setdefault(value.instruction, []).append(value)
    for box in graph.walk():
        for value in values.get(box.instruction, ())[:4]:
            box.lines.append(f"{value.text}: {value.local.bare}"[:60])
            for n, axis in _axes(report, value):
                colour = _COLOURS[n % len(_COLOURS)]
                if (colour, axis) not in box.marks:
                    box.marks.append((colour, axis))
    files.write_text(draw, (svg if draw.endswith(".svg") else html)(graph))


def _axes(report: ShardingReport, value: Value) -> list[tuple[int, str]]:
    """The axes that split a value: their numbers in the mesh, and their names."""
    mesh = report.mesh
    numbers = sorted({mesh.axes[a].number for a in value.sharding.used})
    return [(n, mesh.mesh.axes[n][0]) for n in numbers]


def _show(report: ShardingReport, top: int, everything: bool) -> None:
    module, values = report.module, list(report.values())
    print_text(f"{module.name} over {report.mesh.mesh}: {report.mesh.count} devices")
    if report.auto is not None:
        print_text("\n".join([*report.auto.lines(), ""]))
    shown = values if everything else _chosen(report, values, top)
    made = table("value", "shape", "sharding", "each device", "why")
    for v in shown:
        made.add_row(v.name, str(v.shape.bare), v.text, str(v.local.bare), _why(v))
    print_table(made)
    if len(shown) < len(values):
        print_text(f"… and {len(values) - len(shown)} more; --all shows them")
    refused = [r for v in shown for r in v.refusals]
    if refused:
        print_text("\n".join(["", "refused", *(f"  {line}" for line in dict.fromkeys(map(str, refused)))]))
    _show_transfers(report)


def _chosen(report: ShardingReport, values: list[Value], top: int) -> list[Value]:
    """Parameters and results, then the largest others, in the order of the program."""
    entry = report.module.entry
    ends = [
        v
        for v in values
        if v.instruction.parent is entry and (v.instruction.opcode == "parameter" or v.instruction.is_root)
    ]
    kept = set(map(id, ends[:top]))
    rest = sorted((v for v in values if id(v) not in kept), key=lambda v: -v.local_bytes)
    kept |= set(map(id, rest[: max(0, top - len(kept))]))
    return [v for v in values if id(v) in kept]


def _why(v: Value) -> str:
    """``'x' from %dot.1 (3); 'y' given``: the neighbour and the level of priority."""
    parts = [f"{s.axes} from %{s.source} ({s.level})" if s.level else f"{s.axes} {_giver(s)}" for s in v.steps]
    return "; ".join(parts) or "whole"


def _giver(s: Step) -> str:
    if s.tie:
        return f"by {s.tie}"
    return f"by %{s.by}" if s.by else "given"


def _show_transfers(report: ShardingReport) -> None:
    if report.refusal is not None:
        print_text(f"\nno program for each device: {report.refusal}")
        return
    print_text(f"\neach device: {size(report.peak)} of memory at most, about {seconds(report.seconds)} a run")
    total = sum(t.runs * t.wire_bytes for t in report.transfers)
    time = sum(t.runs * t.seconds for t in report.transfers)
    if not report.transfers:
        print_text("\nno collectives")
        return
    print_text(f"\ncollectives: {size(total)} on the wire of each device, about {seconds(time)}")
    made = table("op", "from", "devices>", "runs>", "bytes>", "on the wire>", "time>")
    for t in report.transfers:
        runs = f"{t.runs:g}" + "?" * (not t.known)
        made.add_row(t.name, t.where, str(t.devices), runs, size(t.bytes), size(t.wire_bytes), seconds(t.seconds))
    print_table(made)
