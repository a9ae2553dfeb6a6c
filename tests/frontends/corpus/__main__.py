"""``python -m tests.frontends.corpus [TEXT]``: every expression of the table (those that contain TEXT) on its own."""

from __future__ import annotations

import sys

from tests.frontends.corpus.check import check
from tests.frontends.corpus.table import expressions

wanted = [e for e in expressions() if all(word in e for word in sys.argv[1:])]
wrong = [message for e in wanted for message in check([e])]
print("\n".join([*wrong, f"{len(wanted)} expressions, {len(wrong)} wrong"]))
sys.exit(bool(wrong))
