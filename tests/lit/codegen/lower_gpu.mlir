// RUN: heron codegen opt %s -p lower-gpu --target gpu | filecheck %s

// CHECK: func.call @llvm.nvvm.barrier.cta.sync.aligned.all
// CHECK: func.call @llvm.nvvm.shfl.sync.down.f32
// CHECK-NEXT: xla_gpu.pure_call @add
// CHECK: func.call @llvm.nvvm.shfl.sync.down.f32
// CHECK-NEXT: xla_gpu.pure_call @add
func.func @k(%x: f32) -> f32 {
  %t = xla_gpu.allocate_shared : tensor<32xf32>
  %u = xla_gpu.sync_threads (%t) : tensor<32xf32>
  %y = xla_gpu.shuffle_reduce @add(%x) to 2 : f32
  func.return %y : f32
}
func.func private @add(f32, f32) -> f32
