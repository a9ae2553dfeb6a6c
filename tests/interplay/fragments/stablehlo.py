"""Ops that JAX does not write: batch norms, select-and-scatter of any kind, windows over pairs, maps, case."""

from __future__ import annotations

from tests.interplay.fragment import Fragment
from tests.interplay.spliced import stablehlo


def F(name: str, takes: str, signature: str, body: str, **facts: object) -> Fragment:
    return Fragment(name, takes, stablehlo(signature, body), mapped=False, **facts)  # type: ignore[arg-type]


_LARGER = """^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
  %gt = stablehlo.compare GT, %b, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
  %v = stablehlo.select %gt, %b, %a : tensor<i1>, tensor<f32>
  %w = stablehlo.select %gt, %j, %i : tensor<i1>, tensor<i32>
  stablehlo.return %v, %w : tensor<f32>, tensor<i32>"""
_ADD = """^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %c = stablehlo.add %a, %b : tensor<f32>
  stablehlo.return %c : tensor<f32>"""


def _choose(direction: str) -> str:
    return f"""^bb0(%a: tensor<f32>, %b: tensor<f32>):
  %c = stablehlo.compare {direction}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  stablehlo.return %c : tensor<i1>"""


FRAGMENTS = [
    F(
        "batch_norm_training", "f32[n,3]; f32[3]; f32[3]",
        "(%x: tensor<Ax3xf32>, %s: tensor<3xf32>, %o: tensor<3xf32>) -> (tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>)",
        """%0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) {epsilon = 0.1 : f32, feature_index = 1 : i64}
           : (tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>)
           return %0#0, %0#1, %0#2 : tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>""",
        ulps=256,
    ),
    F(
        "batch_norm_inference", "f32[2,n,3]; f32[n]; f32[n]; f32[n]; f32[n] positive",
        "(%x: tensor<AxBxCxf32>, %s: tensor<Bxf32>, %o: tensor<Bxf32>, %m: tensor<Bxf32>, %v: tensor<Bxf32>) -> tensor<AxBxCxf32>",
        """%0 = "stablehlo.batch_norm_inference"(%x, %s, %o, %m, %v) {epsilon = 0.1 : f32, feature_index = 1 : i64}
           : (tensor<AxBxCxf32>, tensor<Bxf32>, tensor<Bxf32>, tensor<Bxf32>, tensor<Bxf32>) -> tensor<AxBxCxf32>
           return %0 : tensor<AxBxCxf32>""",
    ),
    F(
        "batch_norm_grad", "f32[n,3]; f32[3]; f32[3]; f32[3] positive; f32[n,3]",
        "(%x: tensor<Ax3xf32>, %s: tensor<3xf32>, %m: tensor<3xf32>, %v: tensor<3xf32>, %g: tensor<Ax3xf32>) -> (tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>)",
        """%0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) {epsilon = 0.1 : f32, feature_index = 1 : i64}
           : (tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<Ax3xf32>) -> (tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>)
           return %0#0, %0#1, %0#2 : tensor<Ax3xf32>, tensor<3xf32>, tensor<3xf32>""",
        ulps=512,
    ),
    *[
        F(
            f"select_and_scatter_{direction.lower()}", "f32[n,4] distinct; f32[n,2]",
            "(%x: tensor<Ax4xf32>, %s: tensor<Ax2xf32>) -> tensor<Ax4xf32>",
            f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
            %0 = "stablehlo.select_and_scatter"(%x, %s, %z) ({{
            {_choose(direction)}
            }}, {{
            {_ADD}
            }}) {{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}}
              : (tensor<Ax4xf32>, tensor<Ax2xf32>, tensor<f32>) -> tensor<Ax4xf32>
            return %0 : tensor<Ax4xf32>""",
            exact=True,
        )
        for direction in ("GE", "LE", "LT")
    ],
    F(
        "reduce_window_pair", "f32[n,4] distinct; s32[n,4]",
        "(%x: tensor<Ax4xf32>, %k: tensor<Ax4xi32>) -> (tensor<Ax2xf32>, tensor<Ax2xi32>)",
        f"""%z = stablehlo.constant dense<-9.0e9> : tensor<f32>
        %o = stablehlo.constant dense<0> : tensor<i32>
        %0:2 = "stablehlo.reduce_window"(%x, %k, %z, %o) ({{
        {_LARGER}
        }}) {{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}}
          : (tensor<Ax4xf32>, tensor<Ax4xi32>, tensor<f32>, tensor<i32>) -> (tensor<Ax2xf32>, tensor<Ax2xi32>)
        return %0#0, %0#1 : tensor<Ax2xf32>, tensor<Ax2xi32>""",
        exact=True,
    ),
    F(
        "map_of_two", "f32[n]; f32[n]", "(%x: tensor<Axf32>, %y: tensor<Axf32>) -> tensor<Axf32>",
        """%0 = "stablehlo.map"(%x, %y) ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %c = stablehlo.multiply %a, %b : tensor<f32>
             %d = stablehlo.tanh %c : tensor<f32>
             stablehlo.return %d : tensor<f32>
           }) {dimensions = array<i64: 0>} : (tensor<Axf32>, tensor<Axf32>) -> tensor<Axf32>
           return %0 : tensor<Axf32>""",
    ),
    F(
        "case_of_three", "f32[n]; s32[] wild", "(%x: tensor<Axf32>, %k: tensor<i32>) -> tensor<Axf32>",
        """%0 = "stablehlo.case"(%k) ({
             stablehlo.return %x : tensor<Axf32>
           }, {
             %a = stablehlo.negate %x : tensor<Axf32>
             stablehlo.return %a : tensor<Axf32>
           }, {
             %b = stablehlo.add %x, %x : tensor<Axf32>
             stablehlo.return %b : tensor<Axf32>
           }) : (tensor<i32>) -> tensor<Axf32>
           return %0 : tensor<Axf32>""",
        exact=True,
    ),
    F(
        "while_of_many", "f32[n]; f32[n]; s32[] index",
        "(%x: tensor<Axf32>, %y: tensor<Axf32>, %k: tensor<i32>) -> (tensor<Axf32>, tensor<Axf32>, tensor<i32>)",
        """%0:3 = stablehlo.while(%a = %x, %b = %y, %i = %k) : tensor<Axf32>, tensor<Axf32>, tensor<i32>
           cond {
             %n = stablehlo.constant dense<4> : tensor<i32>
             %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %c : tensor<i1>
           } do {
             %o = stablehlo.constant dense<1> : tensor<i32>
             %j = stablehlo.add %i, %o : tensor<i32>
             %m = stablehlo.maximum %a, %b : tensor<Axf32>
             stablehlo.return %b, %m, %j : tensor<Axf32>, tensor<Axf32>, tensor<i32>
           }
           return %0#0, %0#1, %0#2 : tensor<Axf32>, tensor<Axf32>, tensor<i32>""",
        exact=True,
    ),
    F(
        "clamp_to_number", "f32[n]", "(%x: tensor<Axf32>) -> tensor<Axf32>",
        """%a = stablehlo.abs %x : tensor<Axf32>
           %c = stablehlo.sqrt %a : tensor<Axf32>
           %e = stablehlo.constant dense<0.5> : tensor<f32>
           %f = stablehlo.clamp %e, %c, %e : (tensor<f32>, tensor<Axf32>, tensor<f32>) -> tensor<Axf32>
           %g = stablehlo.add %c, %f : tensor<Axf32>
           return %g : tensor<Axf32>""",
    ),
    F(
        "reduce_with_precision", "f32[n,5]", "(%x: tensor<Ax5xf32>) -> tensor<Axf32>",
        f"""%z = stablehlo.constant dense<0.0> : tensor<f32>
        %p = stablehlo.reduce_precision %x, format = e8m7 : tensor<Ax5xf32>
        %0 = "stablehlo.reduce"(%p, %z) ({{
        {_ADD}
        }}) {{dimensions = array<i64: 1>}} : (tensor<Ax5xf32>, tensor<f32>) -> tensor<Axf32>
        return %0 : tensor<Axf32>""",
    ),
]  # fmt: skip
