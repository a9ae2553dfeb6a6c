// RUN: heron codegen opt %s -p lower-tensors | filecheck %s
// RUN: not heron codegen opt %s -p inliner,lower-tensors --target nowhere 2>&1 | filecheck %s --check-prefix TARGET

// TARGET: 'nowhere' is not one of 'cpu', 'gpu', 'sim'
// inputs are invariant, i4 lives in a byte
// CHECK: func.func @k(%in: !llvm.ptr {llvm.noalias, {{.*}}llvm.readonly}, %out: !llvm.ptr {llvm.noalias, llvm.align = 16 : i64, llvm.dereferenceable = 8 : i64}
func.func @k(%in: tensor<8xi4>, %out: tensor<8xi4>, %i: index) -> tensor<8xi4> attributes {xla_gpu.entry} {
  // CHECK: %[[J:.*]] = xla_gpu.apply_indexing
  %j = xla_gpu.apply_indexing "(d0) -> (d0 * 4), domain: d0 in [0, 1]"(%i)
  // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr -> i8
  // CHECK-NEXT: arith.trunci %{{.*}} : i8 to i4
  %v = tensor.extract %in[%j] : tensor<8xi4>
  // CHECK: arith.extui %v{{.*}} : i4 to i8
  // CHECK-NEXT: llvm.store %{{.*}} {alignment = 1 : i64}
  %r = tensor.insert %v into %out[%i] : tensor<8xi4>
  func.return %r : tensor<8xi4>
}
