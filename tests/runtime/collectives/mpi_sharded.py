"""The sharded programs over several processes: ``mpiexec -n 2 python -m tests.runtime.collectives.mpi_sharded``.

Each process compiles a program and runs its share of the devices on the global inputs; results are compared with XLA's
in each. Programs by name may follow.
"""

from __future__ import annotations

import sys
import time

import heron
from heron.runtime.collectives import mpi
from tests.sharded_programs import NAMES, Program


def main(names: list[str]) -> None:
    rank, _ = mpi.rank_and_size()
    wrong: list[str] = []
    for name in names or NAMES:
        began = time.process_time()
        program = Program(name)
        compiled = heron.compile(program.module())
        try:
            program.check(compiled.run(program.inputs()), tolerance=2e-4)
        except (AssertionError, heron.HeronError) as error:
            wrong.append(name)
            print(f"process {rank}: {name}: {error}", flush=True)
        if rank == 0:
            print(f"{name}: {compiled.devices} devices, {time.process_time() - began:.1f} s", flush=True)
    print(f"process {rank}: {len(names or NAMES) - len(wrong)} of {len(names or NAMES)} right", flush=True)
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main(sys.argv[1:])
