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
MEANWHILE = """
import gc, weakref
from heron.collector import collect_meanwhile, collector_paused

class Node:
    pass

def cycle():
    node = Node()
    node.itself = node
    return weakref.ref(node)

with collector_paused():
    with collector_paused():
        gone = cycle()
        collect_meanwhile()
    assert gone() is None and not gc.isenabled()
gone = cycle()
collect_meanwhile()
assert gone() is not None
gc.disable()
with collector_paused():
    gone = cycle()
    collect_meanwhile()
assert gone() is not None and not gc.isenabled()
"""


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def test_modules_loaded_in_a_pause_are_old_at_once_and_cycles_go() -> None:
    _run(PAUSED)


def test_what_somebody_has_frozen_stays_frozen() -> None:
    _run(FROZEN)


def test_garbage_of_a_pause_goes_meanwhile_but_not_where_the_process_keeps_it() -> None:
    _run(MEANWHILE)
