"""Linear algebra, Fourier transforms, normalisation and random bits."""

from __future__ import annotations

from typing import Any

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.lower.dynamic import known
from heron.frontends.stablehlo.sizes import sized
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import tuple_


@rule("cholesky")
def _cholesky(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    attrs: dict[str, Any] = {"lower": True} if op.flag("lower") else {}
    return b.add("cholesky", operands, **attrs)


@rule("triangular_solve")
def _triangular_solve(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    flags: dict[str, Any] = {name: True for name in ("left_side", "lower", "unit_diagonal") if op.flag(name)}
    transpose = op.word("transpose_a", default="NO_TRANSPOSE")
    return b.add("triangular-solve", operands, transpose_a=transpose, **flags)


@rule("fft")
def _fft(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    length = op.ints("length", "fft_length")
    return b.add("fft", operands, fft_type=op.word("type", "fft_type"), fft_length=length)


def _normalization(op: Operation) -> dict[str, Any]:
    epsilon = op.find("epsilon")
    if not isinstance(epsilon, (int, float)):
        op.wrong("epsilon", "a number")
    return {"epsilon": float(epsilon), "feature_index": op.integer("feature_index")}


@rule("batch_norm_training", "batch_norm_grad")
def _batch_norm(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    code = op.name.removeprefix("stablehlo.").replace("_", "-")
    return b.parts(b.add(code, operands, **_normalization(op)))


@rule("batch_norm_inference")
def _batch_norm_inference(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return b.add("batch-norm-inference", operands, **_normalization(op))


@rule("rng_bit_generator")
def _rng_bit_generator(b: Block, op: Operation, operands: list[Instruction]) -> list[Instruction]:
    algorithm = "rng_" + op.word("algorithm", "rng_algorithm").lower()
    return b.parts(b.checked("rng-bit-generator", operands, tuple_(op.types), algorithm=algorithm))


@rule("rng")
def _rng(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """The third operand, the shape, is what the result type says, or else must be known."""
    distribution = "rng_" + op.word("distribution", "rng_distribution").lower()
    to = op.types[0]
    if to.is_unbounded:
        to = sized(op, to, known(op, operands[2], "shape"))
    return b.checked("rng", operands[:2], to, distribution=distribution)
