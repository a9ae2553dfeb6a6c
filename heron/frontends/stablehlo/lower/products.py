"""Dots and convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heron.frontends.stablehlo.block import Block, rule
from heron.frontends.stablehlo.syntax import Operation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import ConvDims, Window, WindowDim


@rule("dot_general", "chlo.ragged_dot")
def _dot_general(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    if op.name == "chlo.ragged_dot":
        return _ragged_dot(b, op, operands)
    numbers = op.fields("dot_dimension_numbers")
    if numbers:
        pairs = [
            (numbers.get(f"lhs_{kind}_dimensions", ()), numbers.get(f"rhs_{kind}_dimensions", ()))
            for kind in ("batching", "contracting")
        ]
    else:
        pairs = [_pair(op, "batching_dims"), _pair(op, "contracting_dims")]
    return _dot(b, op, operands, pairs[0], pairs[1])


@rule("dot")
def _plain_dot(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    """Vectors and matrices: the lhs's last dimension with the rhs's first."""
    return _dot(b, op, operands, ((), ()), ((operands[0].shape.rank - 1,), (0,)))


def _pair(op: Operation, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    value = op.attrs.get(name, ((), ()))
    pair = isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, tuple) for v in value)
    if not pair or any(type(n) is not int for side in value for n in side):
        op.wrong(name, "two lists of dimensions, [0] x [1],")
    return value


def _dot(b: Block, op: Operation, operands: list[Instruction], batch: Any, contracting: Any) -> Instruction:
    attrs: dict[str, Any] = {}
    if batch[0] or batch[1]:
        attrs["lhs_batch_dims"], attrs["rhs_batch_dims"] = batch
    if contracting[0] or contracting[1]:
        attrs["lhs_contracting_dims"], attrs["rhs_contracting_dims"] = contracting
    attrs.update(precision(op))
    algorithm = op.fields("algorithm")
    if algorithm:
        attrs["algorithm"] = _algorithm(algorithm)
    return b.checked("dot", operands, op.types[0], **attrs)


def precision(op: Operation) -> dict[str, Any]:
    """``operand_precision``, unless both are the default."""
    words = op.find("precision", "precision_config")
    if not isinstance(words, tuple) or all(w == "DEFAULT" for w in words):
        return {}
    return {"operand_precision": tuple(str(w).lower() for w in words)}


def _algorithm(given: dict[str, Any]) -> str:
    """HLO's name of a dot algorithm: the three types, and how many products of parts it takes."""
    lhs, rhs, out = (given.get(f"{n}_type") for n in ("lhs_precision", "rhs_precision", "accumulation"))
    lhs, rhs, out = (str(t).removeprefix("Shape").lower() for t in (lhs, rhs, out))
    name = f"dot_{lhs}_{rhs}_{out}"
    if "f8" in lhs:
        name = f"dot_any_f8_any_f8_{out}"
        return name + ("_fast_accum" if given.get("allow_imprecise_accumulation") else "")
    count = given.get("num_primitive_operations", 1)
    return f"{name}_x{count}" if count != 1 else name


def _ragged_dot(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    numbers = op.fields("ragged_dot_dimension_numbers")
    if not numbers:
        op.wrong("ragged_dot_dimension_numbers", "dimension numbers")
    attrs = {
        ours: tuple(numbers.get(theirs, ()))
        for ours, theirs in (
            ("lhs_batch_dims", "lhs_batching_dimensions"),
            ("rhs_batch_dims", "rhs_batching_dimensions"),
            ("lhs_contracting_dims", "lhs_contracting_dimensions"),
            ("rhs_contracting_dims", "rhs_contracting_dimensions"),
            ("lhs_ragged_dims", "lhs_ragged_dimensions"),
            ("rhs_group_dims", "rhs_group_dimensions"),
        )
    }
    return b.checked("ragged-dot", operands, op.types[0], **attrs, **precision(op))


# -- convolutions ----------------------------------------------------------------------------------------------------
@rule("convolution")
def _convolution(b: Block, op: Operation, operands: list[Instruction]) -> Instruction:
    return convolution(b, op, operands)


def convolution(
    b: Block, op: Operation, operands: list[Instruction], padding: list[tuple[int, int]] | None = None
) -> Instruction:
    """A convolution; its windows are attributes, but for a `padding` that is given here."""
    dims = op.find("dimension_numbers")
    if not isinstance(dims, ConvDims):
        op.wrong("dimension_numbers", "[b, 0, f]x[0, i, o]->[b, 0, f]")
    attrs: dict[str, Any] = {"window": _window(op, operands[1], dims, padding), "dim_labels": dims}
    for name in ("feature_group_count", "batch_group_count"):
        if (count := op.integer(name, default=1)) != 1:
            attrs[name] = count
    return b.checked("convolution", operands, op.types[0], **attrs, **precision(op))


def _window(op: Operation, kernel: Instruction, dims: ConvDims, padding: list[tuple[int, int]] | None) -> Window:
    """Sizes are the kernel's; the rest is the custom form's ``window`` or attributes of their own."""
    rank = len(dims.kernel_spatial)
    if kernel.shape.rank != rank + 2:
        op.fail("SHLO004", "the kernel's rank differs from the number of its labels", why=str(kernel.shape.bare))
    inner = op.fields("window")
    op.attrs.update({_LONG[k]: v for k, v in inner.items() if k in _LONG})
    ones = (1,) * rank
    if padding is None:
        padding = [(low, high) for low, high in op.table("padding")] if rank and op.find("padding") is not None else []
    padding = padding or [(0, 0)] * rank
    reversal = op.find("window_reversal") or (False,) * rank
    if not isinstance(reversal, tuple):
        reversal = tuple(bool(v) for v in reversal.reshape(-1))
    rows: dict[str, Sequence[Any]] = {
        "window_strides": op.ints("window_strides", default=ones),
        "padding": padding,
        "lhs_dilation": op.ints("lhs_dilation", default=ones),
        "rhs_dilation": op.ints("rhs_dilation", default=ones),
        "window_reversal": reversal,
    }
    for name, row in rows.items():
        if len(row) != rank:
            op.wrong(name, f"one value for each of {rank} spatial dimensions")
    return tuple(
        WindowDim(kernel.shape.dims[d], stride, low, high, base, spread, bool(back))
        for d, stride, (low, high), base, spread, back in zip(dims.kernel_spatial, *rows.values(), strict=True)
    )


_LONG = {
    "stride": "window_strides",
    "pad": "padding",
    "lhs_dilate": "lhs_dilation",
    "rhs_dilate": "rhs_dilation",
    "reverse": "window_reversal",
}
