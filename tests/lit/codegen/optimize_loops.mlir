// RUN: heron codegen opt %s -p optimize-loops --target gpu | filecheck %s

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

// an accumulating loop around another that loads 64 bytes a round: how the kernel is launched is not known here, so
// that it stays single
// CHECK-LABEL: func.func @rounds
func.func @rounds(%t: tensor<4096xf32>, %u: tensor<4096xf32>) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: scf.for
  // CHECK: } {heron.unroll = 1 : i64}
  %a = scf.for %r = %c0 to %c6 step %c1 iter_args(%x = %zero) -> (f32) {
    %s = scf.for %e = %c0 to %c8 step %c1 iter_args(%y = %x) -> (f32) {
      %v = tensor.extract %t[%e] : tensor<4096xf32>
      %w = tensor.extract %u[%e] : tensor<4096xf32>
      %p = arith.mulf %v, %w : f32
      %n = arith.addf %y, %p : f32
      scf.yield %n : f32
    }
    scf.yield %s : f32
  }
  // 32 bytes are for LLVM to decide
  // CHECK-NOT: heron.unroll
  %b = scf.for %r = %c0 to %c6 step %c1 iter_args(%x = %zero) -> (f32) {
    %s = scf.for %e = %c0 to %c8 step %c1 iter_args(%y = %x) -> (f32) {
      %v = tensor.extract %t[%e] : tensor<4096xf32>
      %n = arith.addf %y, %v : f32
      scf.yield %n : f32
    }
    scf.yield %s : f32
  }
  func.return %a, %b : f32, f32
}

// loops that write or read an array of a thread's own, whatever else they do; another loop stays
// CHECK-LABEL: func.func @own
func.func @own(%t: tensor<64xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %a = tensor.empty() : tensor<4xf32>
  // CHECK: scf.for
  // CHECK: scf.if
  // CHECK: } {heron.full_unroll}
  %b = scf.for %s = %c0 to %c4 step %c1 iter_args(%x = %a) -> (tensor<4xf32>) {
    %in = arith.cmpi sle, %s, %c1 : index
    %w = scf.if %in -> (tensor<4xf32>) {
      %v = tensor.extract %t[%s] : tensor<64xf32>
      %n = tensor.insert %v into %x[%s] : tensor<4xf32>
      scf.yield %n : tensor<4xf32>
    } else {
      scf.yield %x : tensor<4xf32>
    }
    scf.yield %w : tensor<4xf32>
  }
  // CHECK: } {heron.full_unroll}
  %c = scf.for %s = %c0 to %c4 step %c1 iter_args(%x = %zero) -> (f32) {
    %v = tensor.extract %b[%s] : tensor<4xf32>
    %n = arith.addf %x, %v : f32
    scf.yield %n : f32
  }
  // CHECK-NOT: full_unroll
  %d = scf.for %s = %c0 to %c4 step %c1 iter_args(%x = %c) -> (f32) {
    %v = tensor.extract %t[%s] : tensor<64xf32>
    %n = arith.addf %x, %v : f32
    scf.yield %n : f32
  }
  func.return %d : f32
}
