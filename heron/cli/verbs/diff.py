"""``heron diff``: how two compiles differ, first cause first."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from heron.cli.common import (
    examples,
    json_option,
    print_json,
    print_table,
    print_text,
    settings_option,
    target_option,
)
from heron.cli.progress import at_step
from heron.cli.traces import trace_of
from heron.errors import HeronError
from heron.trace.record import Decision, PassRecord
from heron.trace.summary import seconds, size, table

if TYPE_CHECKING:
    from heron.trace.difference import Changed, Difference, Step, Total


@click.command(
    short_help="Show how two compiles differ.",
    epilog=examples(
        "heron diff before.trace after.trace",
        "heron diff model.hlo model.hlo --with fusion=xla",
        "heron diff before.trace after.trace --view changes.html",
        "heron diff before.trace after.trace --exit-code --json",
    ),
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--with", "others", metavar="NAME=VALUE", multiple=True, help="Set an option for B alone.")
@click.option("--target-b", metavar="T", help="Machine for B, if it is another one.")
@click.option("--top", metavar="N", type=click.IntRange(1), default=8, show_default=True, help="Rows to show.")
@click.option("--view", metavar="OUT.html", help="Write the page of B with a view of what differs from A.")
@click.option("--exit-code", "tells", is_flag=True, help="Exit with 1 if they differ.")
@target_option
@settings_option
@json_option
def command(
    a: str,
    b: str,
    others: tuple[str, ...],
    target_b: str | None,
    top: int,
    view: str | None,
    tells: bool,
    target: str,
    settings: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compare two compiles: A and B are traces from `heron compile -o x.trace`, or programs, which are compiled first.

    Shown are the options that differ, the first pass that did something else, what came of it for kernels, bytes, time
    and memory, and the decisions that differ. The first of these is the first cause: later ones may follow from it.
    """
    from heron.trace.difference import difference

    if view is not None and not view.endswith((".html", ".htm")):
        raise HeronError("CLI034", f"'{view}' is not a page", hint="--view OUT.html")
    if b.endswith(".trace") and (others or target_b):
        raise HeronError("CLI045", "--with and --target-b say how to compile B", why=f"'{b}' is compiled already")
    before = trace_of(a, target, settings, texts=view is not None)
    after = trace_of(b, target_b or target, (*settings, *others), texts=view is not None)
    with at_step("comparing"):
        found = difference(before, after, (a, b))
    if view is not None:
        from heron.view.page import write

        with at_step(f"writing {view}"):
            write(after, view, before)
    print_json(found.to_json()) if as_json else _show(found, top)
    return int(tells and not found.is_empty)


def _show(d: Difference, top: int) -> None:
    print_text(f"A {d.a}\nB {d.b}")
    if d.is_empty:
        print_text("the same passes, decisions and kernels")
        return
    if d.programs:
        print_text(d.programs)
    for name, x, y in d.options:
        print_text(f"option {name}: A {x or 'as by default'}, B {y or 'as by default'}")
    if d.first_pass is not None:
        print_text(_pass(*d.first_pass))
    made = table("", "A>", "B>", "change>")
    for t in d.totals:
        if t.a or t.b:
            made.add_row(t.name, _figure(t, t.a), _figure(t, t.b), _change(t))
    print_text("")
    print_table(made)
    _show_decisions(d.decisions, top)
    _show_steps(d.steps, top)


def _pass(run: int, a: PassRecord | None, b: PassRecord | None) -> str:
    from heron.trace.difference import rules_of_one

    if a is None or b is None:
        one, found = ("A", a) if a is not None else ("B", b)
        return f"the same passes up to run {run + 1}, which only {one} has" + (f": {found.name}" if found else "")
    if a.name != b.name:
        return f"the same up to pass run {run + 1}: {a.name} in A, {b.name} in B"
    counts = f"{a.before:,} -> {a.after:,} instructions in A, {b.before:,} -> {b.after:,} in B"
    rules = "".join(f"\n  {rule} fired {x} times in A, {y} in B" for rule, x, y in rules_of_one(a, b))
    return f"the same up to pass run {run + 1}, {a.name}: {counts}{rules}"


def _figure(t: Total, value: float) -> str:
    return {"s": seconds, "B": size}.get(t.unit, lambda n: f"{n:,.0f}")(value)


def _change(t: Total) -> str:
    if t.a == t.b or t.is_measured:
        return ""
    return f"{100 * (t.b - t.a) / t.a:+.1f} %" if t.a else "new"


def _show_decisions(decisions: list[Changed], top: int) -> None:
    if not decisions:
        print_text("\nno decision differs")
        return
    kinds = {k: sum(c.kind == k for c in decisions) for k in ("other answer", "other reason", "other cost", "only one")}
    counted = ", ".join(f"{n} {k}" for k, n in kinds.items() if n)
    print_text(f"\n{len(decisions)} decisions differ ({counted}), first cause first:")
    for c in decisions[:top]:
        d = c.either
        _wrapped(f"  {d.rule}: {d.subject}" + (f" -> {d.object}" if d.object else ""))
        for name, x, kernels in (("A", c.a, c.a_kernels), ("B", c.b, c.b_kernels)):
            _wrapped(f"    {name} {_answer(x)}")
            for kernel, time in kernels:
                print_text(f"          in {kernel}, {seconds(time)}")
    if len(decisions) > top:
        print_text(f"  … and {len(decisions) - top} more; --top {len(decisions)} shows all")


def _answer(d: Decision | None) -> str:
    if d is None:
        return "did not ask"
    cost = "" if d.cost_before is None or d.cost_after is None else f" ({d.cost_before:.6g} -> {d.cost_after:.6g})"
    return f"{'yes' if d.ok else 'no '} {d.reason}{cost}"


def _wrapped(text: str) -> None:
    print_text(textwrap.fill(text, 100, subsequent_indent=" " * 10, break_on_hyphens=False))


def _show_steps(steps: list[Step], top: int) -> None:
    if not steps:
        return
    print_text("")
    made = table("steps that differ", "A runs>", "B runs>", "A time>", "B time>", "change>")
    for s in steps[:top]:
        runs = (f"{n:g}" if n else "" for n in (s.a_runs, s.b_runs))
        times = (seconds(t) if n else "" for n, t in ((s.a_runs, s.a_seconds), (s.b_runs, s.b_seconds)))
        made.add_row(s.name, *runs, *times, f"{'+' if s.b_seconds > s.a_seconds else '-'}{_gap(s)}")
    print_table(made)
    if len(steps) > top:
        print_text(f"… and {len(steps) - top} more; --top {len(steps)} shows all")


def _gap(s: Step) -> str:
    return seconds(abs(s.b_seconds - s.a_seconds))
