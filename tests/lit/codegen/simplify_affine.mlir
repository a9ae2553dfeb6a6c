// RUN: heron codegen opt %s -p simplify-affine | filecheck %s

// CHECK-LABEL: func.func @k
func.func @k(%i: index, %j: index) -> (index, index, index) {
  // division by a power of two is a shift, any other one of a small number is done in 32 bits
  // CHECK: arith.shrui %i
  // CHECK: arith.index_cast %j : index to i32
  // CHECK-NEXT: arith.divui {{.*}} : i32
  // ranges decide: i mod 64 is i
  // CHECK: func.return %{{.*}}, %{{.*}}, %i
  // CHECK-NOT: apply_indexing
  %a, %b, %c = xla_gpu.apply_indexing "(d0, d1) -> (d0 floordiv 8, d1 floordiv 10, d0 mod 64), domain: d0 in [0, 63], d1 in [0, 99]"(%i, %j)
  func.return %a, %b, %c : index, index, index
}
