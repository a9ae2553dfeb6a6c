"""Devices that take turns on one thread: the same bits as devices that are threads, and refusals where they are stuck."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.runtime.executable import Executable
from tests.runtime.collectives.test_failures import ALL, HEAD, divergent, rows

PROGRAMS = {
    "no collectives": "y = f32[8,64] exponential(x) ROOT r = (f32[8,64], f32[8,64]) tuple(y, x)",
    "small": f"s = f32[8,64] all-reduce(x), {ALL.format(1)} ROOT r = f32[8,64] sine(s)",
    "large": f"""l = f32[8,64,100] broadcast(x), dimensions={{0,1}}
      s = f32[8,64,100] all-reduce(l), {ALL.format(1)} ROOT r = f32[8,64,100] negate(s)""",
    "exchanged": """a = f32[8,64] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}
      n = u32[] partition-id()  f = f32[] convert(n)  b = f32[8,64] broadcast(f), dimensions={}
      ROOT r = f32[8,64] add(a, b)""",
    "pairs": """a = f32[8,64] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,0},{2,3}}
      g = f32[16,64] all-gather(a), channel_id=2, replica_groups={{0,2},{1,3}}, dimensions={0}, use_global_device_ids=true
      ROOT r = f32[16,64] cosine(g)""",
}

_LOOP = f"""{HEAD}
body {{
  c = (f32[8], s32[]) parameter(0)
  v = f32[8] get-tuple-element(c), index=0
  n = s32[] get-tuple-element(c), index=1
  s = f32[8] all-reduce(v), {ALL.format(1)}
  q = f32[] constant(0.3)
  w = f32[8] broadcast(q), dimensions={{}}
  m = f32[8] multiply(s, w)
  one = s32[] constant(1)
  next = s32[] add(n, one)
  ROOT t = (f32[8], s32[]) tuple(m, next)
}}
cond {{
  c = (f32[8], s32[]) parameter(0)
  n = s32[] get-tuple-element(c), index=1
  k = s32[] constant(9)
  ROOT l = pred[] compare(n, k), direction=LT
}}
ENTRY main {{
  x = f32[8] parameter(0)
  n = s32[] parameter(1)
  t = (f32[8], s32[]) tuple(x, n)
  ROOT r = (f32[8], s32[]) while(t), body=body, condition=cond
}}"""


def in_turns(program: Executable, given: list[list[np.ndarray]]) -> list[np.ndarray] | None:
    """The flat outputs of all devices; None where the call is refused."""
    entry = program.native_entry()
    assert entry is not None
    found = entry.call(*[x for row in given for x in row])
    return None if found is NotImplemented else list(found)


def agree(program: Executable, given: list[list[np.ndarray]]) -> None:
    wanted = [x for row in program.run_devices(given) for x in row]
    for _ in range(3):
        found = in_turns(program, given)
        assert found is not None and len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_turns_give_the_bits_of_threads(name: str) -> None:
    program = heron.compile(heron.parse(f"{HEAD}ENTRY main {{ x = f32[8,64] parameter(0) {PROGRAMS[name]} }}"))
    rng = np.random.default_rng(1)
    agree(program, [[rng.standard_normal((8, 64), np.float32)] for _ in range(4)])


def test_loops_with_collectives() -> None:
    rng = np.random.default_rng(2)
    given = [[rng.standard_normal(8, np.float32), np.array(0, np.int32)] for _ in range(4)]
    agree(heron.compile(heron.parse(_LOOP)), given)


def test_other_threads_and_launches_between() -> None:
    program = heron.compile(divergent(f"ROOT a = f32[3] all-reduce(x), {ALL.format(1)}", "ROOT n = f32[3] negate(x)"))
    agree(program, rows(0, 0, 0, 0))
    agree(program, rows(1, 1, 1, 1))


def test_devices_that_wait_forever_are_left_to_threads() -> None:
    program = heron.compile(divergent(f"ROOT a = f32[3] all-reduce(x), {ALL.format(1)}", "ROOT n = f32[3] negate(x)"))
    agree(program, rows(0, 0, 0, 0))
    assert in_turns(program, rows(0, 1, 0, 0)) is None
    with pytest.raises(heron.HeronError, match="RUN087"):
        program.run_devices(rows(0, 1, 0, 0))
    assert in_turns(program, rows(0, 0, 0, 0)) is None  # devices are in the middle of a meeting for good
    assert (program.run_devices(rows(0, 0, 0, 0))[2][0] == 4).all()


def test_arguments_that_do_not_fit_are_refused() -> None:
    program = heron.compile(heron.parse(_LOOP))
    assert in_turns(program, [[np.zeros(8, np.float32), np.array(0, np.int32)]] * 3) is None
    wrong = [[np.zeros(8, np.float32), np.array(0, np.int32)]] * 3 + [[np.zeros(7, np.float32), np.array(0, np.int32)]]
    assert in_turns(program, wrong) is None
