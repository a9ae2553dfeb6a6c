"""Launches without a hang: ``python -m tests.runtime.collectives.stress --launches 100 --callers 3``.

Every caller, a thread of Python, runs a program of many collectives in a loop on 8 devices, with several threads each,
again and again; every result is compared.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence

import numpy as np

import heron
from heron.runtime.executable import Executable

DEVICES = 8
TRIPS = 20

PROGRAM = """HloModule stress, num_partitions=8
f { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
g { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }
body {
  p = (s32[], f32[64,512], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[64,512] get-tuple-element(p), index=1
  y = f32[] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  all = f32[64,512] all-reduce(x), channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true,
    to_apply=g
  some = f32[8,512] reduce-scatter(all), channel_id=2, replica_groups={{0,1,2,3,4,5,6,7}}, use_global_device_ids=true,
    dimensions={0}, to_apply=g
  back = f32[64,512] all-gather(some), channel_id=3, replica_groups={{7,6,5,4,3,2,1,0}}, use_global_device_ids=true,
    dimensions={0}
  moved = f32[64,512] collective-permute(back), channel_id=4,
    source_target_pairs={{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}
  cut = f32[64,512] all-to-all(moved), channel_id=5, replica_groups={{0,1,2,3},{4,5,6,7}}, dimensions={1}
  n = f32[] constant(1)
  more = f32[] all-reduce(n), channel_id=6, replica_groups={{0,2,4,6},{1,3,5,7}}, use_global_device_ids=true, to_apply=f
  sum = f32[] add(y, more)
  ROOT t = (s32[], f32[64,512], f32[]) tuple(next, cut, sum)
}
condition {
  p = (s32[], f32[64,512], f32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(20)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY main {
  x = f32[64,512] parameter(0)
  zero = s32[] constant(0)
  none = f32[] constant(0)
  t = (s32[], f32[64,512], f32[]) tuple(zero, x, none)
  w = (s32[], f32[64,512], f32[]) while(t), condition=condition, body=body
  y = f32[64,512] get-tuple-element(w), index=1
  s = f32[] get-tuple-element(w), index=2
  ROOT r = (f32[64,512], f32[]) tuple(y, s)
}
"""


def compiled(threads: int) -> Executable:
    """The program, each device with as many threads."""
    return heron.compile(heron.parse(PROGRAM), options=heron.Options(threads=threads * DEVICES))


def stress(programs: list[Executable], launches: int, callers: int, places: Sequence[int] = range(DEVICES)) -> int:
    """Run on the devices of this process; the number of launches whose results were right."""
    good: list[int] = []

    def call(caller: int) -> None:
        for n in range(launches):
            values = np.arange(DEVICES, dtype=np.float32) + caller + n
            rows = [[np.full((64, 512), values[place], np.float32)] for place in places]
            outputs = programs[n % len(programs)].run_devices(rows, places=places)
            if all((x == values[-1]).all() and s == 4 * TRIPS for x, s in outputs):
                good.append(n)

    threads = [threading.Thread(target=call, args=(c,)) for c in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(good)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--launches", type=int, default=100)
    parser.add_argument("--callers", type=int, default=2)
    options = parser.parse_args()
    began = time.perf_counter()
    good = stress([compiled(1), compiled(3)], options.launches, options.callers)
    wanted = options.launches * options.callers
    print(f"{good} of {wanted} launches right, {time.perf_counter() - began:.1f} s")
    raise SystemExit(good != wanted)


if __name__ == "__main__":
    main()
