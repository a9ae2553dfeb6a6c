"""``python -m tests.frontends.corpus [TEXT…]``: every expression of the table on its own."""

from __future__ import annotations

import argparse
import sys

from heron.cli.series import series
from tests.frontends.corpus.check import check
from tests.frontends.corpus.table import expressions

parser = argparse.ArgumentParser(prog="python -m tests.frontends.corpus", description=__doc__)
parser.add_argument("text", nargs="*", help="only expressions that contain every TEXT")
words = parser.parse_args().text
wanted = [e for e in expressions() if all(word in e for word in words)]
if not wanted:
    parser.error(f"no expression contains {' and '.join(map(repr, words))}")
wrong: list[str] = []
with series("expressions", len(wanted)) as work:
    for e in work.over(wanted, str):
        wrong += check([e])
print("\n".join([*wrong, f"{work.done:g} expressions, {len(wrong)} wrong"]))
sys.exit(work.code(wrong))
