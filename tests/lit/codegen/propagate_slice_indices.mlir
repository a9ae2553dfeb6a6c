// RUN: heron codegen opt %s -p propagate-slice-indices | filecheck %s
// RUN: heron codegen opt %s -p propagate-slice-indices,lower-tensors | filecheck %s --check-prefix LLVM

// the output is written into the first input
// CHECK: func.func @k(%in: tensor<8xf32> {xla_gpu.slice_index = 0 : i64}, %only: tensor<8xf32> {xla_gpu.slice_index = 1 : i64, xla_gpu.invariant}, %i: index, %out: tensor<8xf32> {xla_gpu.alias = 0 : i64, xla_gpu.slice_index = 0 : i64})
// LLVM: func.func @k
func.func @k(%in: tensor<8xf32>, %only: tensor<8xf32>, %i: index, %out: tensor<8xf32> {xla_gpu.alias = 0 : i64}) -> tensor<8xf32> attributes {xla_gpu.entry} {
  %a = func.call @f(%in, %only, %i) : (tensor<8xf32>, tensor<8xf32>, index) -> f32
  %b = func.call @f(%in, %only, %i) : (tensor<8xf32>, tensor<8xf32>, index) -> f32
  %c = func.call @g(%in, %only, %i) : (tensor<8xf32>, tensor<8xf32>, index) -> f32
  %d = func.call @g(%only, %only, %i) : (tensor<8xf32>, tensor<8xf32>, index) -> f32
  %n = arith.addf %a, %b : f32
  %r = tensor.insert %n into %out[%i] : tensor<8xf32>
  func.return %r : tensor<8xf32>
}
// CHECK: @f(%t: tensor<8xf32> {xla_gpu.slice_index = 0 : i64}, %u: tensor<8xf32> {xla_gpu.slice_index = 1 : i64, xla_gpu.invariant}, %i: index)
// LLVM: @f(%t: !llvm.ptr {xla_gpu.slice_index = 0 : i64, llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 32 : i64}, %u: !llvm.ptr {{.*}}llvm.readonly}, %i: index)
func.func private @f(%t: tensor<8xf32>, %u: tensor<8xf32>, %i: index) -> f32 {
  %v = func.call @h(%u, %u, %i) : (tensor<8xf32>, tensor<8xf32>, index) -> f32
  func.return %v : f32
}
// calls disagree about the first argument
// CHECK: @g(%t: tensor<8xf32>, %u: tensor<8xf32> {xla_gpu.slice_index = 1 : i64, xla_gpu.invariant}, %i: index)
func.func private @g(%t: tensor<8xf32>, %u: tensor<8xf32>, %i: index) -> f32 {
  %v = tensor.extract %t[%i] : tensor<8xf32>
  func.return %v : f32
}
// twice the same slice: invariant, but no strangers
// CHECK: @h(%t: tensor<8xf32> {xla_gpu.slice_index = 1 : i64, xla_gpu.invariant}, %u: tensor<8xf32> {xla_gpu.slice_index = 1 : i64, xla_gpu.invariant}, %i: index)
// LLVM: func.func private @h(
// LLVM-NOT: noalias
// LLVM-SAME: llvm.readonly
func.func private @h(%t: tensor<8xf32>, %u: tensor<8xf32>, %i: index) -> f32 {
  %v = tensor.extract %t[%i] : tensor<8xf32>
  func.return %v : f32
}
