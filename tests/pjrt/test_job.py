"""Processes of a job that MPI cannot join: each says why, and a shared program repeats it."""

from __future__ import annotations

import json
import sys

import pytest

from heron import HeronError, pjrt
from heron.pjrt.job import Job, own_word
from heron.runtime.collectives import mpi

SHARED = """HloModule shared, num_partitions=4
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[3] parameter(0)
  ROOT r = f32[3] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=f
}
"""


def word(rank: int, size: int = 2) -> str:
    return json.dumps({"devices": 2, "rank": rank, "size": size})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([word(0), own_word(2)], "process 1: mpiexec did not start it"),
        ([word(0, 4), word(1, 4)], "mpiexec started 4 processes, jax.distributed has 2"),
        ([word(0), word(0)], "mpiexec started 2 processes"),
    ],
)
def test_a_shared_program_is_refused(words: list[str], why: str) -> None:
    client = pjrt.Client("cpu", devices=2, job=Job.of(words), process_index=1)
    with pytest.raises(HeronError, match="PJRT030") as error:
        client.compile(SHARED, pjrt.CompileOptions(num_partitions=4, device_assignment=((0, 1, 2, 3),)))
    assert error.value.what.startswith("'shared' is work of processes 0, 1") and why in (error.value.why or "")
    assert "mpiexec -n 2" in (error.value.hint or "")


def test_programs_of_one_process_need_no_other() -> None:
    client = pjrt.Client("cpu", devices=2, job=Job.of([word(0), own_word(2)]), process_index=1)
    alone = "HloModule alone, num_partitions=2\nENTRY main { x = f32[3] parameter(0) ROOT r = f32[3] negate(x) }"
    everywhere = pjrt.CompileOptions(num_partitions=2, device_assignment=((1, 2),))
    program = client.compile(alone, everywhere)
    assert [d.id for d in program.devices] == [2] and program.places == [1] and not program.processes


def test_mpi4py_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    mpi.library.cache_clear()  # type: ignore[attr-defined]
    with pytest.raises(HeronError, match="RUN083"):
        mpi.own_places(4)
    why = json.loads(own_word(2))["why"]
    assert "need mpi4py" in why and "import of mpi4py" in why
    mpi.library.cache_clear()  # type: ignore[attr-defined]
