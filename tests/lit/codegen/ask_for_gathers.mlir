// RUN: heron codegen opt %s -p ask-for-gathers --target cpu --gathers +avx2,+fast-gather | filecheck %s
// RUN: heron codegen opt %s -p ask-for-gathers --target cpu | filecheck %s --check-prefix NONE

// NONE-NOT: target-features

// CHECK: func.func @looks_up(
// CHECK-SAME: "llvm.attr.target-features" = "+avx2,+fast-gather"
func.func @looks_up(%places: !llvm.ptr, %table: !llvm.ptr, %n: index, %one: index) {
  scf.for %k = %one to %n step %one {
    %i = arith.index_cast %k : index to i64
    %p = llvm.getelementptr %places[%i] : (!llvm.ptr, i64) -> !llvm.ptr, i64
    %place = llvm.load %p : !llvm.ptr -> i64
    %q = llvm.getelementptr %table[%place] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %q : !llvm.ptr -> f32
  }
  func.return
}

// CHECK: func.func @strides(
// CHECK-NOT: target-features
func.func @strides(%table: !llvm.ptr, %n: index, %one: index) {
  %c = arith.constant 4 : i64
  scf.for %k = %one to %n step %one {
    %i = arith.index_cast %k : index to i64
    %j = arith.muli %i, %c : i64
    %q = llvm.getelementptr %table[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %v = llvm.load %q : !llvm.ptr -> f32
  }
  func.return
}
