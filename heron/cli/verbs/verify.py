"""``heron verify``: reports every broken rule of a program, or lists the rules."""

from __future__ import annotations

import click

from heron.cli.common import examples, json_option, print_json, print_table, print_text, read_source
from heron.errors import HeronError
from heron.trace.summary import table


@click.command(
    short_help="Find every broken rule of a program.",
    epilog=examples(
        "heron verify model.hlo",
        "heron verify compiled.hlo --mode layout-sensitive --mode scheduled",
        "heron verify --rules",
    ),
)
@click.argument("file", metavar="FILE", required=False)
@click.option("--mode", "names", multiple=True, metavar="MODE", help="Check more rules; `--rules` shows the modes.")
@click.option("--rules", is_flag=True, help="List the rules.")
@click.option("--markdown", "as_page", is_flag=True, help="With --rules: print the page docs/reference/verifier.md.")
@json_option
def command(file: str | None, names: tuple[str, ...], rules: bool, as_page: bool, as_json: bool) -> int:
    """Verify FILE (text or binary, - for standard input) and report every broken rule.

    The exit code is 2 if a rule is broken.
    """
    from heron.hlo.verifier import in_modes, modes, problems

    for name in names:
        if name not in modes():
            raise HeronError("CLI002", f"there is no mode '{name}'", hint=f"modes are {', '.join(modes())}")
    if rules:
        _list_rules(as_page, as_json)
        return 0
    if file is None:
        raise HeronError("CLI002", "missing argument 'FILE'", hint="heron verify FILE, or heron verify --rules")
    from heron.frontends import from_bytes

    module = from_bytes(*read_source(file))
    found = [p.error() for p in problems(module, in_modes(names))]
    if as_json:
        print_json({"module": module.name, "problems": [e.to_json() for e in found]})
    else:
        count = module.instruction_count()
        fine = f"'{module.name}' keeps all rules: {count} instructions"
        print_text("\n\n".join(e.render() for e in found) or fine)
    return 2 if found else 0


def _list_rules(as_page: bool, as_json: bool) -> None:
    from heron.hlo.verifier import RULES
    from heron.hlo.verifier.listing import markdown

    if as_page:
        print_text(markdown())
    elif as_json:
        print_json([{"code": r.code, "rule": r.summary, "asked of": r.looks_at, "mode": r.switch} for r in RULES])
    else:
        rows = table("code", "what must be so", "mode")
        for r in RULES:
            rows.add_row(r.code, r.summary, r.switch)
        print_table(rows)
