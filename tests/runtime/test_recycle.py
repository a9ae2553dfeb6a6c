"""Large outputs: ordinary arrays, the memory of dead ones used again."""

from __future__ import annotations

import gc
import os
import pickle
import platform
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import heron
from heron import HeronError
from heron.codegen.native import helpers  # noqa: F401
from heron.runtime import array_pool

F32 = np.dtype(np.float32)
linux = pytest.mark.skipif(platform.system() != "Linux", reason="memory is recycled on Linux only")


def test_arrays_are_ordinary() -> None:
    for dims in ((), (0,), (3, 4), (1 << 18,), (1 << 11, 1 << 10), (1 << 22,)):
        a = array_pool.empty(dims, F32)
        assert a.shape == dims and a.dtype == F32
        assert a.flags.owndata and a.flags.c_contiguous and a.flags.writeable and a.base is None
        a[...] = 3
        assert (pickle.loads(pickle.dumps(a)) == a).all()


@linux
def test_large_arrays_are_aligned() -> None:
    assert array_pool.empty((array_pool.LARGE // 4,), F32).ctypes.data % 64 == 0
    assert array_pool.empty((1 << 21,), F32).ctypes.data % (1 << 21) == 0


def _keep_one_block() -> None:
    """Whatever was kept goes, and what other tests left to the collector; one block of LARGE + 1 bytes stays."""
    gc.collect()
    for _ in range(500):
        array_pool.empty((array_pool.LARGE + 1,), np.dtype(np.int8))


@linux
def test_memory_comes_back() -> None:
    _keep_one_block()
    before = array_pool.state().kept
    a = array_pool.empty((1 << 20, 3), F32)
    place, view = a.ctypes.data, a[5:]
    del a
    assert array_pool.empty((1 << 20, 3), F32).ctypes.data != place  # a view keeps it alive
    view[...] = 1
    del view
    assert array_pool.state().kept >= before + 2 * 12 * 2**20
    first, second = array_pool.empty((1 << 20, 3), F32), array_pool.empty((3 << 20,), F32)
    assert place in (first.ctypes.data, second.ctypes.data)


@linux
def test_blocks_nobody_wants_go() -> None:
    stale = array_pool.empty((array_pool.LARGE + 12345,), np.dtype(np.int8))
    del stale
    _keep_one_block()
    assert array_pool.state().kept == array_pool.LARGE + 1


def test_resize() -> None:
    a = array_pool.empty((1 << 20,), F32)
    a[:] = np.arange(1 << 20)
    a.resize((1 << 21,), refcheck=False)
    assert (a[: 1 << 20] == np.arange(1 << 20)).all()
    assert not a[1 << 20 :].any()
    a.resize((10,), refcheck=False)
    assert (a == np.arange(10)).all()


def test_numpys_own_allocator_is_left_alone() -> None:
    array_pool.empty((1 << 20,), F32)
    from numpy._core.multiarray import get_handler_name  # pyright: ignore

    assert get_handler_name() == get_handler_name(np.empty(1 << 20, F32)) != "heron"


def test_no_memory() -> None:
    for dims in ((1 << 60,), (1 << 62, 1 << 62)):
        with pytest.raises(HeronError) as caught:
            array_pool.empty(dims, F32)
        assert caught.value.code == "RUN010"


def test_threads() -> None:
    def work(seed: int) -> None:
        for n in range(200):
            a = array_pool.empty((array_pool.LARGE + n % 3,), np.dtype(np.int8))
            a[::4096] = seed
            assert (a[::4096] == seed).all()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_arrays_outlive_the_interpreter_and_forks() -> None:
    text = """
import os, sys
import numpy as np
from heron.codegen.native import helpers
from heron.runtime import array_pool
kept = [array_pool.empty((1 << 20,), np.dtype('f4')) for _ in range(3)]
kept.append(kept)  # a cycle: dies when the interpreter does, if at all
sys.modules["kept"] = kept
child = os.fork()
if not child:
    kept[0][:] = 1
    del kept[0]
    array_pool.empty((1 << 20,), np.dtype('f4'))[:] = 2
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", text], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@linux
def test_a_programs_results_do_not_change_under_the_user() -> None:
    shape = "f32[600,1000]{1,0}"
    text = f"HloModule m\n\nENTRY e {{\n  x = {shape} parameter(0)\n  ROOT y = {shape} negate(x)\n}}\n"
    program = heron.compile(heron.parse(text))
    x = np.arange(600000, dtype=np.float32).reshape(600, 1000)
    results = [program(x + n) for n in range(4)]
    for n, result in enumerate(results):
        np.testing.assert_array_equal(result, -(x + n))


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_outputs_die_with_their_last_user(target: str) -> None:
    """Nothing of a call keeps its outputs, so their memory serves the next call without waiting for the collector."""
    root = "ROOT r = (f32[8], (f32[8], f32[8])) tuple(n, t)"
    text = "HloModule m\nENTRY e {\n p = f32[8] parameter(0)\n n = f32[8] negate(p)\n s = f32[8] sine(p)\n"
    program = heron.compile(heron.parse(f"{text} t = (f32[8], f32[8]) tuple(s, p)\n {root}\n}}\n"), target)
    gc.disable()
    try:
        first, (second, _) = program(np.ones(8, np.float32))
        alive = [weakref.ref(first), weakref.ref(second)]
        del first, second, _
        assert [a() for a in alive] == [None, None]
    finally:
        gc.enable()
