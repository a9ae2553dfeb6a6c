"""Every real program on the device: small ones to XLA's values, with graphs and without; full ones to the evaluator's."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.cli import compare, values
from heron.options import Options
from heron.runtime.thunks import HostThunk
from tests.gpu.device import Gpu
from tests.support import NAMES, golden_values, program, tolerances

#: values an evaluator finds in seconds
FULL = "gelu_f32 gelu_bf16 softmax layernorm row_sum col_sum transpose_chain cumsum matmul_bf16_gelu".split()


def agree(name: str, got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Compare as ``heron run --expect`` does."""
    words = iter(tolerances(name))
    given = {str(key): value for key, value in zip(words, words, strict=True)}
    rows = compare.compare_all(got, wanted, given.get("--rtol"), given.get("--atol"), name)  # type: ignore[arg-type]
    bad = [str(r) for r in rows if not r.ok]
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "streams"])
@pytest.mark.parametrize("name", NAMES)
def test_small(gpu: Gpu, name: str, graphs: bool) -> None:
    if not graphs and gpu.recorder is not None and name.startswith("gpt2"):
        pytest.skip("rehearsed with graphs only")
    module = heron.parse(program(name, platform="cuda").read_text())
    held = values.read(str(golden_values(name)))
    executable = gpu.compile(module, Options(graphs=graphs))
    arrays = values.fit(held.inputs, module, held.name)
    for _ in range(2):  # the second call finds everything there
        agree(name, executable.run(arrays), held.outputs)
    if gpu.recorder is not None and graphs:
        kinds = {type(t) for t in executable.program.thunks}
        assert gpu.recorder.count("cuGraphLaunch") or len(executable.program.thunks) == 1 or HostThunk in kinds


@pytest.mark.parametrize("name", FULL)
def test_full(gpu: Gpu, name: str) -> None:
    if gpu.recorder is not None:
        pytest.skip("too large for a rehearsal")
    module = heron.parse(program(name, small=False, platform="cuda").read_text())
    arrays = values.random(module, 0)
    wanted = heron.evaluate(module, *arrays)
    flat = list(wanted) if isinstance(wanted, tuple) else [wanted]
    agree(name, gpu.compile(module).run(arrays), flat)
