"""Whole programs: every workload of the first milestone on the CPU and on the simulated GPU, against XLA's results."""

from __future__ import annotations

import pytest

from tests.support import golden_values, heron, program, tolerances

RUN = (
    "gelu_f32 gelu_bf16 softmax layernorm rmsnorm_swiglu matmul_f32 attention_f32 transformer_block "
    "gpt2_train_step heat_while mandelbrot cond_switch adam_200 embedding_grad"
).split()


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("name", RUN)
def test_goldens(name: str, target: str) -> None:
    ran = heron("run", program(name), "--target", target, "--expect", golden_values(name), *tolerances(name))
    assert ran.code == 0, ran.out + ran.err
