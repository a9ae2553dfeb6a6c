"""``python -m benchmarks.gpu.published``: the cost model beside published times of GPU kernels, with no GPU.

``--write`` puts the table into docs/reference/published.md. Figures and sources are in ``cases.toml``.
"""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks.gpu.published.table import page, rows
from heron import files

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "published.md"


@click.command(help=__doc__)
@click.option("--write", is_flag=True, help="Write docs/reference/published.md.")
def main(write: bool) -> None:
    text = page(rows())
    click.echo(text)
    if write:
        files.write_text(PAGE, text)


if __name__ == "__main__":
    main()
