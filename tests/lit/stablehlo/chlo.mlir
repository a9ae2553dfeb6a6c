// Functions that are an HLO op of their own.
// RUN: heron fmt %s | filecheck %s
// CHECK: %scanned (input: f32[4], carry: f32[4]) -> (f32[4], f32[4]) {
// CHECK: (f32[3,4]{1,0}, f32[4]{0}) scan(%a, %i), dimensions={0}, num_carries=1, is_reverse=true, is_associative=true, to_apply=%scanned
// CHECK: f32[3,5]{1,0} ragged-dot(%a, %g, %n), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}
module @chlo {
  func.func @main(%a: tensor<3x4xf32>, %i: tensor<4xf32>, %g: tensor<2x4x5xf32>, %n: tensor<2xi32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<3x5xf32>) {
    %0:2 = chlo.scan(%a) inits (%i) dimension=0 attributes {is_associative = true, is_reverse = true} {
    ^bb0(%input: tensor<4xf32>, %carry: tensor<4xf32>):
      %s = stablehlo.add %input, %carry : tensor<4xf32>
      stablehlo.return %s, %s : tensor<4xf32>, tensor<4xf32>
    } : (tensor<3x4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>)
    %1 = "chlo.ragged_dot"(%a, %g, %n) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<3x4xf32>, tensor<2x4x5xf32>, tensor<2xi32>) -> tensor<3x5xf32>
    return %0#0, %0#1, %1 : tensor<3x4xf32>, tensor<4xf32>, tensor<3x5xf32>
  }
}
