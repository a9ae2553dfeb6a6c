"""A failure planted in every call of the driver: the error names the call or the step, and the device works afterwards.

``python -m tests.runtime.cuda.test_planted_faults`` lists the failures, each with what is said of it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import heron
from heron.backends.compiler import Compilation
from heron.errors import HeronError
from heron.runtime.cuda.array import put
from heron.runtime.cuda.executable import CudaExecutable
from heron.targets import libcuda
from heron.trace import Trace
from tests.backends.test_markers import OFFLOADED
from tests.rehearsal.compiling import kernels_of, rehearsed, teach
from tests.rehearsal.driver import Recorder
from tests.runtime.cuda.programs import BRANCHES, DIAMOND, LOOPS, RANDOM, matrices, parse

INVALID, NO_MEMORY, ILLEGAL_ADDRESS = 1, 2, 700
PROGRAMS = {"diamond": DIAMOND, "loops": LOOPS, "branches": BRANCHES, "random": RANDOM, "offloaded": OFFLOADED}
#: calls that only ask
UNCHECKED = frozenset(
    "cuInit cuDriverGetVersion cuGetErrorName cuDeviceGetName cuDeviceGetAttribute cuDeviceGetCount".split()
)


@cache
def _compiled(name: str) -> tuple[CudaExecutable, list[Any]]:
    """The program, and its kernels for any recorder."""
    module = parse(PROGRAMS[name])
    made = heron.compile(module, "sm_90")
    assert isinstance(made, CudaExecutable)
    return made, kernels_of(made, lambda target: Compilation(module, target, heron.Options(), Trace()))


def _arrays(name: str) -> list[np.ndarray]:
    n = np.array(1, np.int32)
    shapes = {"diamond": (16, 16), "loops": (8,), "branches": (128, 128), "offloaded": (4,)}
    if name == "random":
        return []
    x, y = (a / 16 for a in matrices(shape=shapes[name]))
    return {"diamond": [x, y], "loops": [x], "branches": [n, x], "offloaded": [x]}[name]


def _fresh(name: str, recorder: Recorder) -> CudaExecutable:
    """The program, not loaded, its kernels known to the recorder."""
    made, kernels = _compiled(name)
    made._loaded = None
    teach(kernels, recorder)
    return made


def _run(made: CudaExecutable, name: str) -> list[list[np.ndarray]]:
    """Calls by NumPy arrays, then by arrays of the device at changing addresses."""
    arrays = _arrays(name)
    found = [made.run(arrays) for _ in range(2)]
    kept = [made.on_device(*[put(a, made.device) for a in arrays]) for _ in range(6)]
    return [*found, *([a.numpy() for a in outputs] for outputs in kept)]


@cache
def _calls(name: str) -> tuple[str, ...]:
    """The driver's functions that the program calls."""
    with rehearsed() as recorder:
        _run(_fresh(name, recorder), name)
        return tuple(sorted(set(recorder.calls) & set(libcuda.FUNCTIONS)))


def _cases() -> Iterator[tuple[str, int]]:
    for function in sorted(set(libcuda.FUNCTIONS) - UNCHECKED):
        for result in (INVALID, NO_MEMORY, ILLEGAL_ADDRESS):
            yield function, result


def program_that_calls(function: str) -> str | None:
    """A program that calls a function of the driver."""
    return next((n for n in PROGRAMS if function in _calls(n)), None)


def plant(name: str, function: str, result: int) -> HeronError | None:
    """Run a program whose first call of a function fails, then again without the failure: what was said, or None where
    another way was found. All values have to be right."""
    with rehearsed() as recorder:
        made = _fresh(name, recorder)
        wanted = None if name == "random" else heron.evaluate(parse(PROGRAMS[name]), *_arrays(name))
        recorder.fail[function] = (result, 0)
        said: HeronError | None = None
        outputs: list[list[np.ndarray]] = []
        try:
            outputs = _run(made, name)[:1]
        except HeronError as error:
            said = error
        recorder.fail.clear()
        after = _run(made, name)
        for found in (*outputs, *after) if wanted is not None else ():
            np.testing.assert_allclose(found[-1], wanted[-1], rtol=1e-4, atol=1e-4)  # type: ignore[index]
        made.unload()
        del after
        gc.collect()
    return said


@pytest.mark.parametrize(("function", "result"), list(_cases()))
def test_a_planted_failure(function: str, result: int) -> None:
    name = program_that_calls(function)
    if name is None:
        pytest.skip("no program here calls it")
    error = plant(name, function, result)
    if error is not None:
        said = error.render()
        assert error.code.startswith(("RUN", "TGT")), said
        assert function in said or "CUDA_ERROR" in said or "memory" in said or error.where, said


def main() -> None:
    """Print each failure and what is said of it."""
    found = 0
    for function, result in _cases():
        name = program_that_calls(function)
        if name is not None:
            error = plant(name, function, result)
            found += 1
            said = "goes on in another way, values are right" if error is None else " ".join(error.render().split())
            print(f"{function} gives {result} in '{name}': {said}")
    print(f"{found} planted failures: after each the device is usable and values are right")


if __name__ == "__main__":
    main()
