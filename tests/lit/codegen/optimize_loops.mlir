// RUN: heron codegen opt %s -p optimize-loops | filecheck %s

// CHECK-LABEL: func.func @k
func.func @k(%v: vector<4xf32>, %t: tensor<64xf32>, %i: index) -> (f32, f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: vector.extract %v[%s]
  // CHECK: } {heron.full_unroll}
  %a = scf.for %s = %c0 to %c4 step %c1 iter_args(%x = %zero) -> (f32) {
    %e = vector.extract %v[%s] : f32 from vector<4xf32>
    %n = arith.addf %x, %e : f32
    scf.yield %n : f32
  }
  // a position that is not the loop's variable, and a loop without vectors
  // CHECK-NOT: full_unroll
  %b = scf.for %s = %c0 to %c4 step %c1 iter_args(%x = %zero) -> (f32) {
    %e = vector.extract %v[%i] : f32 from vector<4xf32>
    %n = arith.addf %x, %e : f32
    scf.yield %n : f32
  }
  %d = scf.for %s = %c0 to %c4 step %c1 iter_args(%x = %zero) -> (f32) {
    %e = tensor.extract %t[%s] : tensor<64xf32>
    %n = arith.addf %x, %e : f32
    scf.yield %n : f32
  }
  func.return %a, %b, %d : f32, f32, f32
}
