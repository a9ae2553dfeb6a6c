// Padding that is a constant operand is the window's; reading on, it is an ordinary convolution.
// RUN: heron fmt %s | filecheck %s
// CHECK: f32[2,4,7,6]{3,2,1,0} convolution(%image, %kernel), window={size=3x2 pad=1_0x2_0}, dim_labels=b01f_01io->b01f
func.func @main(%image: tensor<2x5x6x4xf32>, %kernel: tensor<3x2x4x6xf32>) -> tensor<2x4x7x6xf32> {
  %z = stablehlo.constant dense<[[1, 0], [2, 0]]> : tensor<2x2xi32>
  %r = "stablehlo.dynamic_conv"(%image, %kernel, %z) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 1, 1>}> : (tensor<2x5x6x4xf32>, tensor<3x2x4x6xf32>, tensor<2x2xi32>) -> tensor<2x4x7x6xf32>
  return %r : tensor<2x4x7x6xf32>
}
