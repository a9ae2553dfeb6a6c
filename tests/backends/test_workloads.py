"""Whole programs: every workload of the first milestone on the CPU and on the simulated GPU, against XLA's results."""

from __future__ import annotations

import pytest

import heron
from heron.backends import compile
from heron.cli.values import compare, load_values
from tests.workload_files import goldens_path, hlo_path

MUST_RUN = (
    "gelu_f32 gelu_bf16 softmax layernorm rmsnorm_swiglu matmul_f32 attention_f32 transformer_block "
    "gpt2_train_step heat_while mandelbrot cond_switch adam_200 embedding_grad"
).split()


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("name", MUST_RUN)
def test_goldens(name: str, target: str) -> None:
    module = heron.parse(hlo_path(name).read_text(), str(hlo_path(name)))
    inputs, expected = load_values(goldens_path(name))
    outputs = compile(module, target).run(inputs)
    rows = compare(outputs, expected)
    assert all(row.ok for row in rows), "\n".join(map(str, rows))
