// Letters the result lacks are summed over, the others transposed.
// RUN: heron fmt %s | filecheck %s
// CHECK: %[[S:.*]] = f32[2,4]{1,0} reduce(%a, %constant), dimensions={1}, to_apply=%add_f32
// CHECK-NEXT: ROOT %{{.*}} = f32[4,2]{1,0} transpose(%[[S]]), dimensions={1,0}
func.func @main(%a: tensor<2x3x4xf32>) -> tensor<4x2xf32> {
  %0 = "stablehlo.unary_einsum"(%a) <{einsum_config = "ijk->ki"}> : (tensor<2x3x4xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}
