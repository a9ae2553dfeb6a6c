"""``python -m tests.frontends.corpus [TEXT…]``: every expression of the table on its own."""

from __future__ import annotations

import argparse
import sys

from rich.progress import track

from tests.frontends.corpus.check import check
from tests.frontends.corpus.table import expressions

parser = argparse.ArgumentParser(prog="python -m tests.frontends.corpus", description=__doc__)
parser.add_argument("text", nargs="*", help="only expressions that contain every TEXT")
words = parser.parse_args().text
wanted = [e for e in expressions() if all(word in e for word in words)]
if not wanted:
    parser.error(f"no expression contains {' and '.join(map(repr, words))}")
wrong = [message for e in track(wanted, "expressions") for message in check([e])]
print("\n".join([*wrong, f"{len(wanted)} expressions, {len(wrong)} wrong"]))
sys.exit(bool(wrong))
