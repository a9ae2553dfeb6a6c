// RUN: heron codegen opt %s -p narrow-index --target gpu | filecheck %s
// RUN: heron codegen opt %s -p narrow-index --target cpu | filecheck %s --check-prefix CPU

// CPU-NOT: index_bits
// CHECK: func.func @k(%p: !llvm.ptr, %n: i32) attributes {heron.index_bits = 32 : i64}
func.func @k(%p: !llvm.ptr, %n: i32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %t = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
  %row = arith.index_cast %n : i32 to index
  %low = arith.maxsi %row, %c0 : index
  %at = arith.minsi %low, %c8 : index
  scf.for %s = %c0 to %c8 step %c1 {
    %i = xla_gpu.apply_indexing "(d0, d1, d2) -> (d0 * 64 + d1 * 8 + d2), domain: d0 in [0, 127], d1 in [0, 7], d2 in [0, 8]"(%t, %s, %at)
    %j = arith.index_cast %i : index to i64
    %q = llvm.getelementptr inbounds %p[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
  }
  func.return
}
