"""Memory around buffers of CPU programs: programs keep to their own, and those that would not are found."""

from __future__ import annotations

import ctypes
from unittest.mock import patch

import numpy as np
import pytest

import heron
from tests import guarded
from tests.children import Lost, results
from tests.sizes.case import Case
from tests.sizes.jobs import known
from tests.sizes.run import GUARDED, run

SUM = """HloModule sums
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { p = f32[1000] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=add }"""
LESS = """less { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT }
    ENTRY"""
#: of all sizes, one case in so many
EVERY = 797


@pytest.mark.parametrize("case", known(False)[::EVERY], ids=lambda c: c.name)
def test_programs_keep_to_their_buffers(case: Case) -> None:
    assert [o.found for o in run(case, (GUARDED,))] == ["ok"]


def test_donated_arguments_are_written() -> None:
    module = heron.parse("""HloModule m, input_output_alias={ {}: (0, {}, may-alias) }
    ENTRY e { p = f32[70] parameter(0)
      ROOT r = f32[70] add(p, p) }""")
    for donate in (False, True):
        (found,) = guarded.run(module, [np.ones(70, np.float32)], donate=donate)
        assert (found == 2).all()


def test_devices_keep_to_their_buffers() -> None:
    module = heron.parse(
        """HloModule m, num_partitions=4
    ENTRY e { p = f32[37,5] parameter(0), sharding={devices=[4,1]<=[4]}
      s = f32[37,5] sort(p), dimensions={0}, to_apply=less, sharding={devices=[4,1]<=[4]}
      ROOT r = f32[37,5] add(s, p), sharding={devices=[1,4]<=[4]} }""".replace("ENTRY", LESS)
    )
    p = np.random.default_rng(0).standard_normal((37, 5)).astype(np.float32)
    (found,) = guarded.run(module, [p])
    np.testing.assert_array_equal(found, np.sort(p, 0) + p)


def test_a_program_that_reads_too_far_ends() -> None:
    ((_, found),) = results(_with_short_argument, [64], seconds=60)
    assert isinstance(found, Lost) and found.exit_code is not None and found.exit_code < 0


def _with_short_argument(missing: int) -> None:
    def short(rooms: guarded.Rooms, array: np.ndarray, kept: bool) -> np.ndarray:
        room = rooms.room(array.nbytes - missing)
        return np.lib.stride_tricks.as_strided(room.view(array.dtype), array.shape, array.strides)

    with patch.object(guarded.Rooms, "filled", short):
        guarded.run(heron.parse(SUM), [np.ones(1000, np.float32)])


def test_what_is_written_before_a_buffer_is_found() -> None:
    rooms = guarded.Rooms()
    room = rooms.room(100)
    room[:] = 1
    rooms.check()
    room = rooms.room(100)
    ctypes.memset(room.ctypes.data - 1, 1, 1)
    with pytest.raises(AssertionError, match="1 bytes beside buffers"):
        rooms.check()


def test_results_that_depend_on_old_memory_are_found() -> None:
    """Here an output of which the program writes nothing."""
    with (
        patch.object(guarded.CpuExecutable, "_bound", _unwritten),
        pytest.raises(AssertionError, match="never written"),
    ):
        guarded.run(heron.parse(SUM), [np.ones(1000, np.float32)])


def _unwritten(executable: guarded.CpuExecutable, arrays: list[np.ndarray], donate: bool) -> list[np.ndarray]:
    return executable._memory.bind(arrays, executable._memory.borrow(), donate)[1]
