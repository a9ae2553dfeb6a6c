"""The thread pool: every item done once whatever the number of threads, whoever calls, before and after a fork."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from heron import HeronError
from heron.codegen.llvm.jit import Jit
from heron.codegen.native import helpers  # noqa: F401
from heron.runtime.cpu import pool as pools
from heron.runtime.cpu.pool import PARALLEL_FOR, Pool

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(not pools.supported(), reason="the pool needs Linux on x86-64 or AArch64")

_CODE = """
declare void @heron_parallel_for(ptr, ptr, ptr, i64, i64)

; adds 1 to i32s [lo, hi)
define void @count(ptr %a, i64 %lo, i64 %hi) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %j, %loop ]
  %p = getelementptr i32, ptr %a, i64 %i
  %v = load i32, ptr %p
  %w = add i32 %v, 1
  store i32 %w, ptr %p
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}

; forks n times from native code
define void @often(ptr %pool, ptr %fn, ptr %args, i64 %items, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  call void @heron_parallel_for(ptr %pool, ptr %fn, ptr %args, i64 %items, i64 1)
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}

; args: pool, i32s: each item forks over 10 i32s of its own
define void @nested(ptr %args, i64 %lo, i64 %hi) {
entry:
  %pool = load ptr, ptr %args
  %at = getelementptr ptr, ptr %args, i64 1
  %a = load ptr, ptr %at
  br label %loop
loop:
  %i = phi i64 [ %lo, %entry ], [ %j, %loop ]
  %p = getelementptr [10 x i32], ptr %a, i64 %i
  call void @heron_parallel_for(ptr %pool, ptr @count, ptr %p, i64 10, i64 1)
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %hi
  br i1 %more, label %loop, label %done
done:
  ret void
}

; writes hi at lo: where ranges begin and end
define void @starts(ptr %a, i64 %lo, i64 %hi) {
  %p = getelementptr i64, ptr %a, i64 %lo
  store i64 %hi, ptr %p
  ret void
}
"""


@pytest.fixture(scope="module")
def code() -> Jit:
    jit = Jit(level=1, symbols={PARALLEL_FOR: Pool(2).parallel_for})
    jit.add(_CODE, "pool_tests")
    return jit


@pytest.fixture(params=[2, 3, 8])
def pool(request: pytest.FixtureRequest):
    made = Pool(request.param)
    yield made
    made.stop()


def _often(code: Jit, pool: Pool, array: np.ndarray, times: int) -> None:
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 2)(code.address("often"))
    native(pool.address, code.address("count"), array.ctypes.data, array.size, times)


@pytest.mark.parametrize("items", [0, 1, 2, 7, 8, 9, 1000, 65537])
def test_every_item_once(pool: Pool, code: Jit, items: int) -> None:
    counts, ends = np.zeros(items + 1, np.int32), np.zeros(items + 1, np.int64)
    for grain in (1, 3, 256, 10**9):
        pool.run(code.address("starts"), ends.ctypes.data, items, grain)
        if items:
            pool.run(code.address("count"), counts.ctypes.data, items, grain)
    assert (counts[:-1] == 4).all()
    assert counts[-1] == 0


def test_ranges_begin_at_multiples_of_the_grain(pool: Pool, code: Jit) -> None:
    for grain in (1, 16, 100):
        ends = np.zeros(10001, np.int64)
        pool.run(code.address("starts"), ends.ctypes.data, 10000, grain)
        starts = np.flatnonzero(ends)
        assert (starts % grain == 0).all()
        assert starts[0] == 0 and ends[starts[-1]] == 10000
        assert (ends[starts[:-1]] == starts[1:]).all()
        assert pool.threads <= len(starts) <= 4 * pool.threads


def test_many_forks_in_a_row(pool: Pool, code: Jit) -> None:
    counts = np.zeros(100, np.int32)
    _often(code, pool, counts, 1)  # nobody was started yet: the caller does it
    pool.start()
    _often(code, pool, counts, 20000)
    assert (counts == 20001).all()


def test_sleeping_workers_wake(pool: Pool, code: Jit) -> None:
    counts = np.zeros(1 << 20, np.int32)
    for _ in range(20):
        pool.run(code.address("count"), counts.ctypes.data, counts.size)
        time.sleep(0.001)  # long enough that some fall asleep; whether they do, or not, the items are done
    assert (counts == 20).all()


def test_a_fork_inside_a_fork_is_done_by_its_thread(pool: Pool, code: Jit) -> None:
    counts = np.zeros((500, 10), np.int32)
    args = (ctypes.c_void_p * 2)(pool.address, counts.ctypes.data)
    for _ in range(20):
        pool.run(code.address("nested"), ctypes.addressof(args), 500)
    assert (counts == 20).all()


def test_several_python_threads_at_once(pool: Pool, code: Jit) -> None:
    arrays = [np.zeros(5000, np.int32) for _ in range(4)]
    pool.start()
    callers = [threading.Thread(target=_often, args=(code, pool, a, 500)) for a in arrays]
    for c in callers:
        c.start()
    for c in callers:
        c.join()
    assert all((a == 500).all() for a in arrays)


def test_stop_and_start_again(pool: Pool, code: Jit) -> None:
    counts = np.zeros(100, np.int32)
    for n in range(1, 4):
        before = _tasks()
        pool.start()
        workers = _tasks() - before
        assert len(workers) == pool.threads - 1
        pool.run(code.address("count"), counts.ctypes.data, 100)
        pool.stop()
        while workers & _tasks():  # the system takes a moment to clear away a thread that has ended
            time.sleep(0.001)
        _often(code, pool, counts, 1)  # without workers
        assert (counts == 2 * n).all()


def _tasks() -> set[str]:
    """Numbers of the process's threads."""
    return set(os.listdir("/proc/self/task"))


def test_a_pool_is_started_and_stopped_once(pool: Pool, code: Jit) -> None:
    pool.stop()
    before = _tasks()
    pool.start()
    workers = _tasks() - before
    pool.start()
    assert _tasks() - before == workers and pool.started
    pool.stop()
    pool.stop()
    assert not pool.started


def test_signals_stay_with_python(pool: Pool) -> None:
    import signal

    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    pool.start()
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_bad_ranges(pool: Pool, code: Jit) -> None:
    for items, grain in ((-1, 1), (10, 0)):
        with pytest.raises(HeronError) as caught:
            pool.run(code.address("count"), 0, items, grain)
        assert caught.value.code == "RUN031"


def test_how_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 5, 7}, raising=False)
    assert pools.thread_count(0) == 3
    assert pools.thread_count(2) == 2
    assert pools.thread_count(10**9) == 1024
    assert pools.pool(1) is None
    a = pools.pool(3)
    assert a is not None and a is pools.pool(0) and a.threads == 3
    monkeypatch.setattr(pools, "supported", lambda: False)
    assert pools.pool(8) is None


# -- whole processes ---------------------------------------------------------------------------------------------------

_PROGRAM = """
import os, sys, threading, time
import numpy as np
import heron
from heron import Options
from heron.compiling import compile

program = compile(heron.parse('''HloModule m

ENTRY e {
  x = f32[1024,256]{1,0} parameter(0)
  ROOT y = f32[1024,256]{1,0} tanh(x)
}
'''), "cpu", Options(threads=3))
x = np.linspace(-3, 3, 1024 * 256, dtype=np.float32).reshape(1024, 256)

def threads():
    return set(os.listdir("/proc/self/task"))

def check():
    assert abs(program(x) - np.tanh(x)).max() < 1e-6

before = threads()  # some that compiled may still be about to go
check()
assert len(threads() - before) == 2, (before, threads())
"""


def _python(text: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM + text],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_a_process_ends_quietly() -> None:
    _python("")


def test_a_forked_child_has_workers_of_its_own() -> None:
    out = _python("""
child = os.fork()
if not child:
    assert len(threads()) == 1
    check()
    assert len(threads()) == 3
    print("child", flush=True)
    os._exit(0)
check()
assert os.waitpid(child, 0)[1] == 0
""")
    assert out == "child\n"


def test_fork_while_another_thread_runs_the_program() -> None:
    _python("""
stop = False
def work():
    while not stop:
        check()
other = threading.Thread(target=work)
other.start()
for _ in range(10):
    child = os.fork()
    if not child:
        x = np.zeros((1024, 256), np.float32)
        check()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop = True
other.join()
""")


def test_exit_while_a_daemon_thread_runs_the_program() -> None:
    _python("""
def work():
    while True:
        check()
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
""")
