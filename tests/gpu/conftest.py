"""The device of these tests: the real one, or a rehearsed one under ``--rehearse``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from heron.errors import HeronError
from heron.runtime.cuda.device import device
from tests.gpu.device import Gpu
from tests.rehearsal import compiling


@pytest.fixture
def gpu(request: pytest.FixtureRequest) -> Iterator[Gpu]:
    if request.config.getoption("--rehearse", default=False):
        with compiling.rehearsed() as recorder:
            yield Gpu(recorder)
        return
    try:
        device()
    except HeronError as error:
        pytest.skip(f"no GPU: {error.why or error.what}")
    yield Gpu(None)
