"""Test files that several processes run together, as those in JAX's folder `multiprocess`: mpiexec starts them, and
`jax.distributed` joins them. A test has passed when it has in all of them."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from heron.errors import HeronError
from heron.pjrt.conformance.record import CRASHED, Outcome, Record, Task, write

#: the variables by which MPICH and Open MPI number a process
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK")
#: outcomes of a test in several processes, the one that counts first
_WORST = (CRASHED, "failed", "skipped", "passed")
#: seconds for a machine that has other work, too: of a process to come up, to be heard of, to end
_PATIENCE = 120


def rank() -> int:
    """The number of this process; 0 where it is alone."""
    return next((int(os.environ[name]) for name in _RANKS if name in os.environ), 0)


def mpiexec() -> str | None:
    """The command that starts processes: beside this Python, where a wheel puts it, or else on the path."""
    return shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")


def started(command: list[str], processes: int) -> list[str]:
    """A command that runs another one in so many processes. Raises PJRT031 without mpiexec."""
    if processes == 1:
        return command
    starter = mpiexec()
    if starter is None:
        raise HeronError("PJRT031", f"{processes} processes need mpiexec", hint="pip install 'heron[mpi]' mpich")
    return [starter, "-n", str(processes), *command]


def free_address() -> str:
    """A port of this machine that nobody has."""
    with socket.socket() as s:
        s.bind(("localhost", 0))
        return f"localhost:{s.getsockname()[1]}"


def join(task: Task) -> None:
    """Join the other processes, as JAX's own tests do."""
    import jax
    from absl import flags
    from jax._src import test_multiprocess  # it declares flags

    seconds = max(1, int(task.seconds))
    jax.config.config_with_absl()  # type: ignore[attr-defined]
    flags.FLAGS(["tests", f"--num_processes={task.processes}", f"--barrier_timeout={seconds}"])
    assert test_multiprocess.NUM_PROCESSES.value == task.processes
    jax.distributed.initialize(
        task.address,
        task.processes,
        rank(),
        initialization_timeout=_PATIENCE,
        heartbeat_timeout_seconds=_PATIENCE,
        shutdown_timeout_seconds=_PATIENCE,
    )


def merge(logs: Sequence[Path], log: Path) -> None:
    """Add the processes' records to that of the file, and remove them."""
    records = [Record.read(each) for each in logs]
    tests = dict.fromkeys(t for r in records for t in r.outcomes)
    write(log, selected=records[0].selected, process=sum(r.seconds for r in records))
    for test in tests:
        found = [r.outcomes[test] for r in records if test in r.outcomes]
        if len(found) < len(records):
            continue  # it is the one in which a process ended
        worst = min(found, key=lambda o: _WORST.index(o.outcome))
        told = ((n, o.error) for n, o in enumerate(found) if o.outcome == worst.outcome and o.error)
        error = "\n".join(f"process {n}: {why}" for n, why in told)
        _write(log, test, Outcome(worst.outcome, error, sum(o.seconds for o in found)))
    under_way = next((r.under_way for r in records if r.under_way is not None), None)
    if under_way is None:
        under_way = next((t for t in tests if any(t not in r.outcomes for r in records)), None)
    if under_way is not None:
        write(log, test=under_way, outcome="started")
    for each in logs:
        each.unlink(missing_ok=True)


def _write(log: Path, test: str, o: Outcome) -> None:
    write(log, test=test, outcome=o.outcome, error=o.error, seconds=o.seconds)
