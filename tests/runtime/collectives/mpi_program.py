"""One process of `test_mpi`: ``mpiexec -n 2 python -m tests.runtime.collectives.mpi_program WHAT``."""

from __future__ import annotations

import sys

import numpy as np

import heron
from heron.errors import HeronError
from heron.evaluator import evaluate_devices
from heron.runtime.collectives import mpi
from tests.runtime.collectives.test_exchange import FORMS, LOOP, inputs_of, module_of, reducer


def values() -> None:
    """Every form of collective, over groups within a process and across processes, against the evaluator."""
    modules = {name: module_of(body, reducer("f32")) for name, body in FORMS.items()}
    modules["loop"] = heron.parse("HloModule m, num_partitions=4\n" + LOOP)
    for name, module in modules.items():
        inputs = inputs_of(module)
        program = heron.compile(module)
        places = mpi.own_places(program.devices)
        wanted = evaluate_devices(module, inputs)
        for _ in range(3):
            rows = program.run_devices([inputs[n] for n in places], places=places)
            for n, row in zip(places, rows, strict=True):
                assert all(np.array_equal(a, b) for a, b in zip(row, wanted[n], strict=True)), name


def mismatch() -> None:
    """Processes that run different programs: an error on both."""
    rank = mpi.own_places(2).start
    forms = FORMS["all-reduce"], FORMS["all-gather"]
    program = heron.compile(module_of(forms[rank], reducer("f32")), options=heron.Options(device_timeout=20))
    places = mpi.own_places(4)
    try:
        program.run_devices([[np.ones((3, 5), np.float32)]] * 2, places=places)
    except HeronError as error:
        assert error.code == "RUN087" and "process" in (error.why or ""), str(error)
    else:
        raise AssertionError("no error")


if __name__ == "__main__":
    {"values": values, "mismatch": mismatch}[sys.argv[1]]()
