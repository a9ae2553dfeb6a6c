"""The work of ``heron cost``."""

from __future__ import annotations

from heron import targets
from heron.analysis.cost.program import ProgramCost, program_cost
from heron.analysis.cost.report import to_json
from heron.cli import step_report
from heron.cli.auto_shard import memory_of_text
from heron.cli.common import load_module, make_options, print_json, print_table, print_text
from heron.cli.progress import progress
from heron.cli.spread import Spread
from heron.errors import HeronError
from heron.hlo.ir.origin import origin
from heron.targets import Target
from heron.trace import Trace
from heron.trace.summary import count, seconds, size, table


def run(
    file: str,
    target: str,
    mesh: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    auto: bool,
    memory: str | None,
    devices: int | None,
    scale: str | None,
    top: int,
    in_order: bool,
    as_given: bool,
    settings: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile FILE for a target up to its kernels, and estimate the time of each from its work and bytes."""
    machine, options = targets.get(target), make_options(settings)
    module = load_module(file, target)
    limit = memory_of_text(memory) if auto or memory is not None else None
    spread = Spread(mesh, inputs, outputs, limit, devices or 0, scale or "")
    if as_given and spread != Spread():
        raise HeronError("CLI064", "--as-given takes FILE as it is", hint="without --as-given, --mesh spreads it")
    if as_given:
        cost = program_cost(module, machine)
        print_json(to_json(cost, machine)) if as_json else _show(cost, machine, top, in_order, module.name)
        return
    trace = Trace(module.name, target)
    with progress(trace, f"compiling {module.name} for {target}"):
        if scale is not None:
            rows = step_report.scaled(module, spread, machine, options, trace)
        else:
            asked = None if spread == Spread() else spread
            report = step_report.StepReport.of(module, asked, machine, options, trace)
    if scale is not None:
        step_report.show(rows, as_json)
        return
    several = report.devices > 1
    if as_json:
        print_json({**to_json(report.cost, machine), **(report.to_json() if several else {})})
        return
    if several:
        report.show(top)
    _show(report.kernels, machine, top, in_order, f"each device: {module.name}" if several else module.name)


def _show(cost: ProgramCost, target: Target, top: int, in_order: bool, name: str) -> None:
    rows = list(cost.steps) if in_order else sorted(cost.steps, key=lambda s: -s.seconds)
    ideal = sum(s.runs * s.estimate.ideal for s in cost.steps)
    print_text(
        f"{name} on {target.name}: about {seconds(cost.seconds)}, {cost.launches:g} steps, "
        f"{cost.flops / 1e9:.3g} Gflop, {size(cost.bytes)} moved; roofline {seconds(ideal)}"
    )
    if not rows:
        return
    made = table("kernel", "runs>", "time>", "share>", "flops>", "read>", "written>", "limit", "roof>", "from")
    for s in rows[:top]:
        made.add_row(
            s.cost.name,
            f"{s.runs:g}" if s.known else f"{s.runs:g}?",
            seconds(s.seconds),
            f"{100 * s.seconds / cost.seconds:.0f} %" if cost.seconds else "",
            count(s.cost.flops),
            size(sum(r.total for r in s.cost.reads)),
            size(s.cost.written),
            s.estimate.bound,
            f"{100 * s.estimate.fraction:.0f} %",
            origin(s.instruction),
        )
    print_table(made)
    if len(rows) > top:
        rest = sum(s.seconds for s in rows[top:])
        print_text(f"… and {len(rows) - top} more, {seconds(rest)}; --top {len(rows)} shows all")
    if any(not s.known for s in rows):
        print_text("? = inside a loop or branch whose runs are not known: counted once")
