"""One process of `test_mpi`: ``mpiexec -n 2 python -m tests.runtime.collectives.mpi_program WHAT``."""

from __future__ import annotations

import contextlib
import os
import pathlib
import re
import signal
import sys
import threading
import time
from collections.abc import Callable

import numpy as np

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.runtime.collectives import mpi
from heron.runtime.executable import Executable
from heron.runtime.host.callbacks import Filed
from tests.runtime.collectives.stress import compiled, stress
from tests.runtime.collectives.test_exchange import FORMS, LOOP, inputs_of, module_of, reducer
from tests.runtime.collectives.test_failures import ALL, calling, divergent, rows

#: seconds of patience, and of a process that is too late
TIMEOUT, LATE = 2, 5
X = [[np.ones(3, np.float32)]] * 2
#: all-reduces that fit a slot, and that do not
SHORT, LONG = (f"x = f32[{n}] parameter(0) ROOT r = f32[{n}] all-reduce(x), ALL, to_apply=f" for n in (3, 9000))


def values() -> None:
    """Every form of collective, over groups within a process and across processes, against the evaluator."""
    modules = {name: module_of(body, reducer("f32")) for name, body in FORMS.items()}
    modules["loop"] = heron.parse("HloModule m, num_partitions=4\n" + LOOP)
    for name, module in modules.items():
        inputs = inputs_of(module)
        program = heron.compile(module)
        wanted = evaluate_devices(module, inputs)
        # the processes' devices in order, and in turns
        for processes in (0, 0, 1, 1), (1, 0, 1, 1):
            places = [n for n, p in enumerate(processes) if p == RANK]
            for _ in range(2):
                found = program.run_devices([inputs[n] for n in places], places=places, processes=processes)
                for n, row in zip(places, found, strict=True):
                    assert all(np.array_equal(a, b) for a, b in zip(row, wanted[n], strict=True)), name


def faults() -> None:
    """What goes wrong in one process is an error in all; the next launch works, and nothing is left over."""
    good = compile_(SHORT)
    run(good)
    files, threads = count("fd"), count("task")
    for fault in (other_programs, other_orders, other_branches, a_function_that_fails, a_slow_process):
        began = time.monotonic()
        fault()
        for _ in range(2):
            assert (run(good)[1][0] == 4).all(), fault.__name__
        assert time.monotonic() - began < 30
    assert count("fd") == files and count("task") <= threads + 8, (count("fd"), files, count("task"), threads)


def other_programs() -> None:
    program = compile_((SHORT, LONG)[RANK])
    error = refused(lambda: run(program, np.ones((3, 9000)[RANK], np.float32)), "RUN081")
    assert error.what == f"process {RANK} runs 'm', process {1 - RANK} runs another 'm'" and "arrays" in str(error.why)


def other_orders() -> None:
    first, second = (
        compile_(SHORT),
        heron.compile(heron.parse(str(module_of(SHORT, reducer("f32"))).replace("HloModule m", "HloModule n"))),
    )
    if RANK:
        first, second = second, first
    for program in first, second:
        error = refused(lambda p=program: run(p), "RUN081")
        assert "'m'" in error.what and "'n'" in error.what, error


def other_branches() -> None:
    """The processes' devices come to different collectives of one program, of equal sizes and of others."""
    negated = f"n = f32[3] negate(x) ROOT b = f32[3] all-reduce(n), {ALL.format(2)}"
    longer = f"c = f32[6] concatenate(x, x), dimensions={{0}} d = f32[6] all-reduce(c), {ALL.format(2)} ROOT s = f32[3] slice(d), slice={{[0:3]}}"
    for no in negated, longer:
        program = heron.compile(divergent(f"ROOT a = f32[3] all-reduce(x), {ALL.format(1)}", no))
        given = rows(RANK, RANK)
        error = refused(lambda p=program, g=given: p.run_devices(g, places=PLACES), "RUN087", "RUN082")
        assert re.search(r"process . is at all-reduce '.*', process . at all-reduce '", error.why or ""), error


def a_function_that_fails() -> None:
    def function(x: np.ndarray) -> tuple[np.ndarray]:
        if RANK:
            raise ValueError("in process 1")
        return (x,)

    filed = Filed(function)
    program = calling(filed)
    try:
        run(program)
    except ValueError as error:
        assert RANK and str(error) == "in process 1"
    except HeronError as error:
        assert not RANK and error.code == "RUN082" and error.why == "ValueError: in process 1", error
    else:
        raise AssertionError("no error")


def a_slow_process() -> None:
    """Who comes too late hears that the others have gone; both say where."""

    def function(x: np.ndarray) -> tuple[np.ndarray]:
        time.sleep(LATE * RANK)
        return (x,)

    filed = Filed(function)
    program, slow = compile_(SHORT, timeout=TIMEOUT), calling(filed, timeout=TIMEOUT)
    together()
    time.sleep(LATE * RANK)
    error = refused(lambda: run(program), "RUN082" if RANK else "RUN088")
    assert "it waits at the start of 'm'" in (error.why or ""), error
    together()
    if RANK:  # it may still finish, if what it needs has come
        with contextlib.suppress(HeronError):
            run(slow)
    else:
        error = refused(lambda: run(slow), "RUN088")
        assert "waited 2 s for process 1" in error.what and "it waits at all-reduce" in (error.why or ""), error


def killed() -> None:
    """mpiexec ends the others, and says so."""
    program = compile_(SHORT)
    run(program)
    if RANK:
        os.kill(os.getpid(), signal.SIGKILL)
    run(program)


def lost() -> None:
    """A process is killed, and the others live on: they say who waits where for whom, and end."""
    is_inside = sys.argv[2] == "inside"

    def function(x: np.ndarray) -> tuple[np.ndarray]:
        if RANK:
            os.kill(os.getpid(), signal.SIGKILL)
        return (x,)

    filed = Filed(function)
    program, dies = compile_(SHORT), calling(filed)
    run(program)
    began = time.monotonic()
    if RANK and not is_inside:
        os.kill(os.getpid(), signal.SIGKILL)
    error = refused(lambda: run(dies if is_inside else program), "RUN082")
    assert error.what == "process 1 has ended without a word, and 'm' needs it" and time.monotonic() - began < 10, error
    place = "process 0 waits at " + ("all-reduce '" if is_inside else "the start of 'm';")
    assert (error.why or "").startswith(place), error


def silent() -> None:
    """A process that does not answer any more, as one on a machine that is lost."""
    run(compile_(SHORT))
    program = compile_(SHORT, timeout=TIMEOUT)
    pids = mpi.gathered([os.getpid()])
    if RANK:
        os.kill(os.getpid(), signal.SIGSTOP)
        refused(lambda: run(program), "RUN082")
        return
    error = refused(lambda: run(program), "RUN088")
    os.kill(pids[1], signal.SIGCONT)
    assert error.what == "process 0 has waited 2 s for process 1", error
    assert (error.why or "").endswith("process 1 has not come there: it computes, or does not answer"), error


def ended() -> None:
    """A process ends while the other one waits for it."""
    program = compile_(SHORT)
    run(program)
    if RANK:
        return
    began = time.monotonic()
    error = refused(lambda: run(program), "RUN082")
    assert error.what == "process 1 has ended, and 'm' needs it" and time.monotonic() - began < 10, error


def uneven() -> None:
    """Devices that processes cannot share equally."""
    error = refused(lambda: mpi.own_places(3), "RUN083")
    assert "2 processes cannot share 3 devices equally" in error.what
    module = module_of(SHORT.replace("f32[3]", "f32[3]"), reducer("f32"), n=3)
    refused(lambda: heron.compile(module).run_devices([[np.ones(3, np.float32)]], places=[RANK]), "RUN083")


def stressed() -> None:
    """Launches of several programs on 8 devices with several threads each, while other threads run their own."""
    launches = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    programs = [compiled(1), compiled(3)]
    local = [threading.Thread(target=lambda: good.append(stress(programs, launches, 1))) for _ in range(2)]
    good: list[int] = []
    for thread in local:
        thread.start()
    good.append(stress(programs, launches, 1, mpi.own_places(8)))
    for thread in local:
        thread.join()
    assert good == [launches] * 3, good


def everything() -> None:
    """All, one after the other."""
    for each in values, faults, uneven, stressed, silent:
        each()
        print(f"process {RANK}: {each.__name__} right", flush=True)
    together()
    killed()


def unmet() -> None:
    """A process that does not answer when the others first share a program. Those may try again."""
    program = compile_(SHORT, timeout=TIMEOUT)
    pids = mpi.gathered([os.getpid()])
    if RANK:
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        error = refused(lambda: run(program), "RUN088")
        os.kill(pids[1], signal.SIGCONT)
        assert error.what == "process 0 has waited 2 s for process 1" and "first meeting" in (error.why or ""), error
    for got in run(compile_(SHORT)):
        assert np.array_equal(got[0], 4 * X[0][0]), got


# -- help --------------------------------------------------------------------------------------------------------------
def compile_(body: str, timeout: int = 60) -> Executable:
    return heron.compile(module_of(body, reducer("f32")), options=heron.Options(device_timeout=timeout))


def run(program: Executable, x: np.ndarray = X[0][0]) -> list[list[np.ndarray]]:
    return program.run_devices([[x]] * 2, places=PLACES)


def together() -> None:
    """Wait for the other process."""
    mpi.library().COMM_WORLD.Barrier()


def refused(work: Callable[[], object], *codes: str) -> HeronError:
    """The error of some work. It must have one of the codes."""
    try:
        work()
    except HeronError as error:
        assert error.code in codes, str(error)
        return error
    raise AssertionError("no error")


def count(what: str) -> int:
    return sum(1 for _ in pathlib.Path(f"/proc/self/{what}").iterdir())


if __name__ == "__main__":
    RANK, _ = mpi.rank_and_size()
    PLACES = mpi.own_places(4)
    each = values, faults, uneven, stressed, silent, ended, unmet, killed, lost, everything
    {f.__name__: f for f in each}[sys.argv[1]]()
    print(f"process {RANK}: {sys.argv[1]} right", flush=True)
