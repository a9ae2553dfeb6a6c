// RUN: heron codegen opt %s -p divide-by-constants --target cpu | filecheck %s

// the upper half of a product of four halves, then a remainder whose lower half is all of it
// CHECK-LABEL: func.func @remainder
func.func @remainder(%x: i64, %n: index, %one: index) -> i64 {
  %c = arith.constant 301 : i64
  // CHECK: scf.for
  %r = scf.for %k = %one to %n step %one iter_args(%v = %x) -> (i64) {
    // CHECK-NOT: remui
    // CHECK: %[[LOW:.*]] = arith.andi %{{.*}} : i64
    // CHECK-NEXT: %[[HIGH:.*]] = arith.shrui %{{.*}} : i64
    // CHECK-COUNT-4: arith.muli
    // CHECK: arith.muli
    // CHECK-NEXT: arith.subi
    // CHECK-NEXT: arith.andi
    %q = arith.remui %v, %c : i64
    scf.yield %q : i64
  }
  func.return %r : i64
}

// outside of loops there are no vectors, and halves of a narrow number are one number
// CHECK-LABEL: func.func @stays
func.func @stays(%x: i64, %y: i32, %n: index, %one: index) -> (i64, i32) {
  %c = arith.constant 301 : i64
  %d = arith.constant 301 : i32
  // CHECK: arith.divui %{{.*}} : i64
  %q = arith.divui %x, %c : i64
  %r = scf.for %k = %one to %n step %one iter_args(%v = %y) -> (i32) {
    // CHECK: arith.remui %{{.*}} : i32
    %s = arith.remui %v, %d : i32
    scf.yield %s : i32
  }
  func.return %q, %r : i64, i32
}
