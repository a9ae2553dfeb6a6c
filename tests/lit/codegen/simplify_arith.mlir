// RUN: heron codegen opt %s -p simplify-arith | filecheck %s

// CHECK-LABEL: func.func @k
func.func @k(%x: i32, %c: i1) -> (i32, i32, i32, i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %a = arith.addi %x, %zero : i32
  %b = arith.muli %a, %one : i32
  %same = arith.select %c, %b, %x : i32
  %folded = arith.addi %one, %one : i32
  // CHECK-NOT: scf.if
  // CHECK: arith.subi
  %taken = scf.if %true -> (i32) {
    %s = arith.subi %x, %one : i32
    scf.yield %s : i32
  } else {
    scf.yield %zero : i32
  }
  %z = arith.muli %x, %zero : i32
  // CHECK: func.return %x, %{{.*}}, %{{.*}}, %zero
  func.return %same, %folded, %taken, %z : i32, i32, i32, i32
}
