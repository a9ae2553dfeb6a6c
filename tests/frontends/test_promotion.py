"""Regions that combine elements in a wider type than the operands', which StableHLO allows: the operands are converted."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import heron
from heron.evaluator import evaluate
from heron.frontends.stablehlo.importer import parse

ADD = """{{
    ^bb0(%x: tensor<{wide}>, %y: tensor<{wide}>):
      %z = stablehlo.add %x, %y : tensor<{wide}>
      stablehlo.return %z : tensor<{wide}>
    }}"""

FORMS = {
    "reduce": """"stablehlo.reduce"(%a, %s) <{{dimensions = array<i64: 0>}}> (ADD)
      : (tensor<512x{narrow}>, tensor<{narrow}>) -> tensor<{wide}>""",
    "reduce_window": """"stablehlo.reduce_window"(%a, %s) <{{window_dimensions = array<i64: 512>}}> (ADD)
      : (tensor<512x{narrow}>, tensor<{narrow}>) -> tensor<1x{wide}>""",
    "all_reduce": """"stablehlo.all_reduce"(%a) <{{replica_groups = dense<0> : tensor<1x1xi64>}}> (ADD)
      : (tensor<512x{narrow}>) -> tensor<512x{wide}>""",
    "reduce_scatter": """"stablehlo.reduce_scatter"(%a) <{{scatter_dimension = 0 : i64,
      replica_groups = dense<0> : tensor<1x1xi64>}}> (ADD) : (tensor<512x{narrow}>) -> tensor<512x{wide}>""",
    "scatter": """"stablehlo.scatter"(%one, %i, %a) <{{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> (ADD)
      : (tensor<1x{narrow}>, tensor<512x1xi32>, tensor<512x{narrow}>) -> tensor<1x{wide}>""",
    # each window of the padding around the one element selects it
    "select_and_scatter": """"stablehlo.select_and_scatter"(%one, %a, %s) <{{window_dimensions = array<i64: 512>,
      padding = dense<511> : tensor<1x2xi64>}}> ({{
    ^bb0(%x: tensor<{narrow}>, %y: tensor<{narrow}>):
      %z = stablehlo.compare GE, %x, %y : (tensor<{narrow}>, tensor<{narrow}>) -> tensor<i1>
      stablehlo.return %z : tensor<i1>
    }}, ADD) : (tensor<1x{narrow}>, tensor<512x{narrow}>, tensor<{narrow}>) -> tensor<1x{wide}>""",
}
TYPES = [("bf16", "f32", ml_dtypes.bfloat16, np.float32), ("i8", "i32", np.int8, np.int32)]


@pytest.mark.parametrize("narrow, wide, ours, theirs", TYPES, ids=["bf16", "i8"])
@pytest.mark.parametrize("form", FORMS)
def test_sums_are_in_the_type_of_the_region(form: str, narrow: str, wide: str, ours: type, theirs: type) -> None:
    op = FORMS[form].replace("ADD", ADD).format(narrow=narrow, wide=wide)
    result = op.rpartition("-> ")[2]
    zero = "0.0" if narrow == "bf16" else "0"
    module = parse(f"""func.func @main(%a: tensor<512x{narrow}>) -> {result} {{
      %s = stablehlo.constant dense<{zero}> : tensor<{narrow}>
      %one = stablehlo.constant dense<{zero}> : tensor<1x{narrow}>
      %i = stablehlo.constant dense<0> : tensor<512x1xi32>
      %r = {op}
      return %r : {result}
    }}""")
    for found in (evaluate(module, np.ones(512, ours))[0], heron.compile(module, "cpu").run([np.ones(512, ours)])[0]):
        assert found.dtype == theirs
        assert found.sum() == 512  # bf16 stops at 256, s8 at 127
