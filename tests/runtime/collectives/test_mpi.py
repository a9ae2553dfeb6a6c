"""Devices in two processes, by MPI."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import heron
from heron.errors import HeronError
from heron.pjrt.conformance.together import mpiexec, started
from tests.runtime.collectives.test_exchange import FORMS, module_of, reducer

PROGRAM = "tests.runtime.collectives.mpi_program"
ROOT = Path(__file__).parents[3]
HAS_MPI = mpiexec() is not None and importlib.util.find_spec("mpi4py") is not None
NEEDS_MPI = pytest.mark.skipif(not HAS_MPI, reason="needs mpiexec and mpi4py (pip install 'heron[mpi]' mpich)")


def test_devices_of_other_processes_need_mpiexec() -> None:
    program = heron.compile(module_of(FORMS["all-reduce"], reducer("f32")))
    with pytest.raises(HeronError, match="RUN083") as error:
        program.run_devices([[np.ones((3, 5), np.float32)]] * 2, places=(0, 1))
    assert "2 of the program's 4 devices" in error.value.what and "mpiexec -n 2" in (error.value.hint or "")


@NEEDS_MPI
def test_two_processes() -> None:
    """Values, faults of every kind with the next launch after each, and a stress test: see `mpi_program`.

    At last one process is killed: mpiexec ends the other one, and names the signal.
    """
    command = started([sys.executable, "-m", PROGRAM, "everything"], 2)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    told = done.stdout + done.stderr
    for what in "values", "faults", "uneven", "stressed", "silent":
        assert done.stdout.count(f"{what} right") == 2, told
    assert done.returncode != 0 and "signal 9" in told, told


@NEEDS_MPI
def test_a_process_that_does_not_come_to_the_first_meeting() -> None:
    command = started([sys.executable, "-m", PROGRAM, "unmet"], 2)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.count("unmet right") == 2, done.stdout + done.stderr


@NEEDS_MPI
@pytest.mark.parametrize("where", ["outside", "inside"])
def test_a_process_that_is_killed_while_the_others_live_on(where: str) -> None:
    """Before a launch, and in one: the error comes at once, and the others end.

    MPICH's mpiexec would kill them, too; a shell between it and each process keeps from it that one was killed.
    """
    command = started(["sh", "-c", '"$@"; true', "sh", sys.executable, "-m", PROGRAM, "lost", where], 2)
    if "HYDRA" not in subprocess.run([command[0], "-info"], capture_output=True, text=True).stdout:
        pytest.skip("needs MPICH's mpiexec")
    command.insert(1, "-disable-auto-cleanup")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.count("lost right") == 1, done.stdout + done.stderr


@NEEDS_MPI
def test_ids_of_cliques() -> None:
    command = started([sys.executable, "-m", "tests.runtime.collectives.mpi_ids"], 2)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
