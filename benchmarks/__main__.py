"""``python -m benchmarks``: every benchmark with one line; README.md beside this says what each needs."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import click

FOLDER = Path(__file__).parent


def commands() -> dict[str, str]:
    """Each benchmark's module and its first line, without the command it begins with."""
    found = {}
    for path in sorted(FOLDER.rglob("*.py")):
        text = path.read_text()
        if path.parent == FOLDER and path.name.startswith("__") or 'if __name__ == "__main__"' not in text:
            continue
        if path.name == "__main__.py":
            path = path.with_name("__init__.py")
        module = ".".join(path.relative_to(FOLDER.parent).with_suffix("").parts).removesuffix(".__init__")
        line = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
        said = re.match(r"``python -m [^`]*``(?: and ``[^`]*``)*[:,]? ?", line)
        if said is not None:  # what others start does not say how
            found[module] = line[said.end() :]
    return found


@click.command()
def main() -> None:
    """List the benchmarks."""
    found = commands()
    width = max(map(len, found))
    for module, line in found.items():
        click.echo(f"python -m {module.ljust(width)}  {line}")
    click.echo("\nEach has --help; what they need and write stands in benchmarks/README.md.")


if __name__ == "__main__":
    main()
