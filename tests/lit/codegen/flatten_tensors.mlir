// RUN: heron codegen opt %s -p flatten-tensors | filecheck %s

// CHECK: func.func @k(%in: tensor<32xf32>, %scalar: tensor<1xf32>, %out: tensor<32xf32>, %i: index) -> tensor<32xf32>
func.func @k(%in: tensor<4x8xf32>, %scalar: tensor<f32>, %out: tensor<4x8xf32, [0, 1]>, %i: index)
    -> tensor<4x8xf32, [0, 1]> {
  // divisions and products cancel: the linear index is %i itself
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
  // CHECK-NEXT: %table = arith.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00]> : tensor<4xf32>
  // CHECK-NEXT: %v = tensor.extract %in[%i] : tensor<32xf32>
  %table = arith.constant dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>
  %a, %b = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 31]"(%i)
  %v = tensor.extract %in[%a, %b] : tensor<4x8xf32>
  // CHECK-NEXT: tensor.extract %scalar[%[[ZERO]]] : tensor<1xf32>
  %s = tensor.extract %scalar[] : tensor<f32>
  %w = arith.addf %v, %s : f32
  // the layout decides: dimension 0 lies closest
  // CHECK: %[[L:.*]] = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 8 + (d0 mod 8) * 4), domain: d0 in [0, 31]"(%i)
  // CHECK-NEXT: tensor.insert %w into %out[%[[L]]] : tensor<32xf32>
  %r = tensor.insert %w into %out[%a, %b] : tensor<4x8xf32, [0, 1]>
  func.return %r : tensor<4x8xf32, [0, 1]>
}
