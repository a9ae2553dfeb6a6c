// RUN: heron fmt %s | filecheck %s
// Quantized values are their integers; operations on them are written out.

// CHECK: ENTRY %main (x: f32[2,3], w: s8[3,4]) -> (s8[2,4], f32[2,4])
func.func @main(%x: tensor<2x3xf32>, %w: tensor<3x4x!quant.uniform<i8:f32, 5.0e-01>>)
    -> (tensor<2x4x!quant.uniform<i8:f32, 1.0e-01:-30>>, tensor<2x4xf32>) {
  // CHECK: %[[DIVIDE:.*]] = f32[2,3]{1,0} divide(%x,
  // CHECK: %[[CLAMP:.*]] = f32[2,3]{1,0} clamp(
  // CHECK: %[[ROUND:.*]] = f32[2,3]{1,0} round-nearest-even(%[[CLAMP]])
  // CHECK: %[[Q:.*]] = s8[2,3]{1,0} convert(%[[ROUND]])
  %q = stablehlo.uniform_quantize %x : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 1.0e-01:-30>>
  // CHECK: %[[WIDE:.*]] = s32[2,3]{1,0} convert(%[[Q]])
  // CHECK: subtract(%[[WIDE]],
  // CHECK: dot(
  // CHECK: s8[2,4]{1,0} convert(
  %r = stablehlo.dot_general %q, %w, contracting_dims = [1] x [0]
    : (tensor<2x3x!quant.uniform<i8:f32, 1.0e-01:-30>>, tensor<3x4x!quant.uniform<i8:f32, 5.0e-01>>)
    -> tensor<2x4x!quant.uniform<i8:f32, 1.0e-01:-30>>
  %y = stablehlo.uniform_dequantize %r : (tensor<2x4x!quant.uniform<i8:f32, 1.0e-01:-30>>) -> tensor<2x4xf32>
  return %r, %y : tensor<2x4x!quant.uniform<i8:f32, 1.0e-01:-30>>, tensor<2x4xf32>
}
