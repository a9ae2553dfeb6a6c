"""Whole programs on the CPU and on the simulated GPU, against XLA's results.

`test_coverage.py` sees to the others: that they compile, as docs/reference/workloads.md says.
"""

from __future__ import annotations

import pytest

from tests.support import golden_values, heron, program, tolerances

RUN = (
    "gelu_f32 gelu_bf16 softmax layernorm rmsnorm_swiglu matmul_f32 attention_f32 transformer_block "
    "gpt2_train_step heat_while mandelbrot cond_switch adam_200 embedding_grad "
    "conv_variants flax_cnn_grad resnet_block_grad fft cholesky_solve linalg_lapack sort_topk"
).split()
#: those JAX lowers otherwise for CUDA
CUDA = "fft cholesky_solve linalg_lapack threefry uniform".split()


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("name", RUN)
def test_goldens(name: str, target: str) -> None:
    checks = ["--check", "all"] if target.startswith("sim:") else []
    ran = heron("run", program(name), "--target", target, "--expect", golden_values(name), *tolerances(name), *checks)
    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("name", CUDA)
def test_goldens_of_cuda_programs(name: str) -> None:
    path = program(name, platform="cuda")
    job = ["--expect", golden_values(name), *tolerances(name), "--check", "all"]
    ran = heron("run", path, "--target", "sim:sm_90", *job)
    assert ran.code == 0, ran.out + ran.err
