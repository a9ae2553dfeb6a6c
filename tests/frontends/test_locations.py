"""Locations become metadata and names."""

from __future__ import annotations

import pytest

from heron.frontends.stablehlo.importer import parse
from heron.hlo.ir.metadata import Metadata

ALIASES = """
#loc1 = loc("model.py":3:4 to :17)
#loc2 = loc("main.py":9:0)
#loc3 = loc("layer"(#loc1))
#loc4 = loc(callsite(#loc3 at #loc2))
#loc5 = loc("jit(f)/while/jit(g)"(#loc4))
#loc6 = loc("reduce_sum:"(#loc5))
"""


@pytest.mark.parametrize(
    ("location", "name", "metadata"),
    [
        ("", "negate", None),
        (" loc(unknown)", "negate", None),
        (
            " loc(#loc5)",
            "jit_g_",
            Metadata("", "jit(f)/while/jit(g)", "model.py", 3, 3, 4, 17),
        ),
        (' loc("a/b"("x.py":1:2))', "b", Metadata("", "a/b", "x.py", 1, 1, 2)),
        (' loc("x.py":1:2)', "negate", Metadata("", "", "x.py", 1, 1, 2)),
        (' loc(fused<"m">["a", "x.py":1:2])', "negate", Metadata("", "", "x.py", 1, 1, 2)),
        (' loc("0/3d")', "_3d", Metadata("", "0/3d")),
    ],
)
def test_location(location: str, name: str, metadata: Metadata | None) -> None:
    function = f"""func.func @main(%a: tensor<f32> loc("x")) -> tensor<f32> {{
      %0 = stablehlo.negate %a : tensor<f32>{location}
      return %0 : tensor<f32>
    }}"""
    module = parse(function + ALIASES, verify=True)
    assert module.entry.parameters[0].name == "x"
    assert (module.entry.root.name, module.entry.root.metadata) == (name, metadata)


@pytest.mark.parametrize(
    "location",
    [
        "#loc5",
        '"a/b"',
        '"kind:"(#loc3)',
        '"a/b"(#loc1)',
        '"x.py":1:2',
        '"x.py":1:2 to :9',
        '"x.py":1:2 to 5:9',
        "callsite(#loc3 at #loc2)",
        "callsite(#loc7 at #loc2)",
    ],
)
def test_a_location_that_is_one_token_means_what_it_means_with_blanks(location: str) -> None:
    function = """func.func @main(%a: tensor<f32>) -> tensor<f32> {{
      %0 = stablehlo.negate %a : tensor<f32> loc({})
      return %0 : tensor<f32>
    }}
    #loc7 = loc("no place")"""
    whole, spaced = (parse(function.format(text) + ALIASES).entry.root for text in (location, f" {location} "))
    assert (whole.name, whole.metadata) == (spaced.name, spaced.metadata)


def test_the_kind_of_a_primitive_is_the_op_type() -> None:
    function = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.negate %a : tensor<f32> loc(#loc6)
      return %0 : tensor<f32>
    }"""
    metadata = parse(function + ALIASES).entry.root.metadata
    assert metadata is not None and metadata.op_type == "reduce_sum" and metadata.source_line == 3


def test_long_call_stacks_cost_nothing() -> None:
    stack = ['#loc0 = loc("f"("model.py":3:4))']
    stack += [f"#loc{n} = loc(callsite(#loc0 at #loc{n + 1}))" for n in range(1, 500)]
    function = """func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.negate %a : tensor<f32> loc(#loc1)
      return %0 : tensor<f32>
    }"""
    metadata = parse("\n".join([function, *stack])).entry.root.metadata
    assert metadata is not None and metadata.source_line == 3
