"""StableHLO text as a JAX function, for what JAX has no words for."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any


def stablehlo(signature: str, body: str) -> Callable[..., list[Any]]:
    """A JAX function of arrays whose lowering is a function in StableHLO text.

    Args:
        signature: ``(%x: tensor<AxBxf32>) -> tensor<Axf32>``; A, B, C stand for the dimensions of the first array.
        body: its operations and the ``return``, with the same letters.
    """

    def function(*arrays: Any) -> list[Any]:
        sizes = dict(zip("ABCD", arrays[0].shape, strict=False))
        text = f"func.func public @main{signature} {{\n{body}\n}}"
        text = re.sub(r"\b([ABCD])(?=x)|(?<=[<x{\[, ])([ABCD])(?=[x}\], >])", lambda m: str(sizes[m[1] or m[2]]), text)
        return _primitive().bind(*arrays, text=text)

    return function


@cache
def _primitive() -> Any:
    """The primitive that stands for such a text; XLA and heron get it as a private function of the module."""
    from jax._src.interpreters.mlir import merge_mlir_modules
    from jax.extend.core import Primitive
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import func
    from jax.interpreters import mlir

    spliced = Primitive("stablehlo_text")
    spliced.multiple_results = True

    def lowered(ctx: Any, *operands: Any, text: str) -> Any:
        inner = ir.Module.parse(text)
        results = list(next(iter(inner.body.operations)).type.results)
        into = ctx.module_context
        name = merge_mlir_modules(into.module, "spliced", inner, dst_symtab=into.symbol_table)
        return func.CallOp(results, ir.FlatSymbolRefAttr.get(name), operands).results

    spliced.def_abstract_eval(_results)
    mlir.register_lowering(spliced, lowered)
    return spliced


def _results(*_: Any, text: str) -> list[Any]:
    """Types and shapes of the results, by the text."""
    import jax
    import numpy as np

    types = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i1": np.bool_, "i8": np.int8, "ui32": np.uint32}
    after = text[text.index(" -> ") : text.index("{\n")]
    found = []
    for tensor in re.findall(r"tensor<([^>]*)>", after):
        *dims, element = tensor.split("x")
        found.append(jax.core.ShapedArray(tuple(map(int, dims)), np.dtype(types[element])))
    return found
