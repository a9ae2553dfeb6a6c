"""The cycle collector around compiles: no walk over loaded modules, and no garbage that stays."""

from __future__ import annotations

import subprocess
import sys

PAUSED = """
import gc, weakref
from heron.collector import collector_paused

class Node:
    pass

with collector_paused():
    assert not gc.isenabled()
    import heron.hlo.text
    kept = [[] for _ in range(10_000)]
    node = Node()
    node.itself, gone = node, weakref.ref(node)
    del node
young = len(gc.get_objects(generation=0))
assert gc.isenabled() and young < 5_000, young
assert gc.get_freeze_count() == 0 and gone() is not None
gc.collect()
assert gone() is None
"""
FROZEN = """
import gc
from heron.collector import collector_paused
gc.collect()
gc.freeze()
before = gc.get_freeze_count()
with collector_paused():
    import heron.hlo.text
assert gc.get_freeze_count() > before // 2 > 0
"""


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def test_modules_loaded_in_a_pause_are_old_at_once_and_cycles_go() -> None:
    _run(PAUSED)


def test_what_somebody_has_frozen_stays_frozen() -> None:
    _run(FROZEN)
