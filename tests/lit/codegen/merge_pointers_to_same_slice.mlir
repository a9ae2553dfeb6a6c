// RUN: heron codegen opt %s -p flatten-tensors,lower-tensors,merge-pointers-to-same-slice | filecheck %s

// CHECK: func.func @k(%in: !llvm.ptr {llvm.align = 16 : i64, llvm.dereferenceable = 16 : i64}, %other: !llvm.ptr {llvm.noalias
// CHECK-SAME: %out: !llvm.ptr {xla_gpu.alias = 0 : i64, llvm.noalias
// CHECK: llvm.getelementptr inbounds %out
// CHECK: llvm.getelementptr inbounds %other
// CHECK-NOT: %in
func.func @k(%in: tensor<4xf32>, %other: tensor<4xf32>, %out: tensor<4xf32> {xla_gpu.alias = 0 : i64}, %i: index)
    -> tensor<4xf32> attributes {xla_gpu.entry} {
  %a = tensor.extract %in[%i] : tensor<4xf32>
  %b = tensor.extract %other[%i] : tensor<4xf32>
  %c = arith.addf %a, %b : f32
  %r = tensor.insert %c into %out[%i] : tensor<4xf32>
  func.return %r : tensor<4xf32>
}
