"""The programs that sequences compile and run, each with inputs that never change."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

import heron
from heron.cli import values
from tests.sizes.jobs import known
from tests.support import program

#: small real programs that compile in a second or less
_REAL = (
    "adam_200", "attention_bf16_grad", "attention_f32", "cholesky_solve", "concat_pad_slice", "cond_switch", "conv_variants",
    "cumsum", "dtype_zoo", "embedding_grad", "fft", "flax_cnn_grad", "gather_scatter", "heat_while", "int8_quant_matmul",
    "kv_decode", "layernorm", "linalg_lapack", "lstm_scan", "mandelbrot", "math_zoo", "matmul_bf16_gelu", "nbody", "reductions",
    "resnet_block_grad", "rmsnorm_swiglu", "softmax", "sort_topk", "uniform",
)  # fmt: skip
#: one case of every family of sizes in so many
_EVERY = 211
#: what the simulator does in a moment
_SIM_WORK = 4_000


@dataclass(frozen=True)
class Subject:
    """A program with two sets of inputs."""

    name: str
    target: str
    text: str
    inputs: tuple[tuple[np.ndarray, ...], ...]

    def module(self) -> heron.Module:
        return heron.parse(self.text)


@cache
def names() -> Sequence[str]:
    """Every program's name: ``cpu softmax``, ``sim:sm_90 sort 17``, …; the number is that of a case of sizes."""
    cases = range(0, len(known(False)), _EVERY)
    small = [n for n in cases if known(False)[n].work <= _SIM_WORK]
    return [*(f"cpu {name}" for name in _REAL), *(f"cpu #{n}" for n in cases), *(f"sim:sm_90 #{n}" for n in small)]


@cache
def subject(name: str) -> Subject:
    """The program of that name."""
    target, what = name.split()
    if not what.startswith("#"):
        text = program(what).read_text()
        module = heron.parse(text)
        return Subject(name, target, text, tuple(tuple(values.random(module, seed)) for seed in range(2)))
    case = known(False)[int(what[1:])]
    draws = [np.random.default_rng(zlib.crc32(f"{case.name} {n}".encode())) for n in range(2)]
    return Subject(name, target, case.text, tuple(tuple(case.inputs(rng)) for rng in draws))


def digest(outputs: Sequence[np.ndarray]) -> str:
    """The bits of a run's results."""
    found = hashlib.sha256()
    for a in outputs:
        found.update(f"{a.dtype}{a.shape}".encode())
        found.update(np.ascontiguousarray(a).tobytes())
    return found.hexdigest()[:16]


def alone(name: str) -> list[str]:
    """What the program gives for each set of inputs; called in a process that has done nothing else."""
    s = subject(name)
    executable = heron.compile(s.module(), s.target)
    return [digest(executable.run(list(inputs))) for inputs in s.inputs]
