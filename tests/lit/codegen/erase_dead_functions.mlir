// RUN: heron codegen opt %s -p erase-dead-functions | filecheck %s

// CHECK: func.func @entry
func.func @entry(%x: f32) -> f32 {
  %a = xla_gpu.pure_call @used(%x) : (f32) -> f32
  func.return %a : f32
}
// CHECK: func.func private @used
func.func private @used(%x: f32) -> f32 { func.return %x : f32 }
// CHECK-NOT: @unused
// CHECK-NOT: @only_by_unused
// CHECK-NOT: @declared
func.func private @unused(%x: f32) -> f32 {
  %a = xla_gpu.pure_call @only_by_unused(%x) : (f32) -> f32
  func.return %a : f32
}
func.func private @only_by_unused(%x: f32) -> f32 { func.return %x : f32 }
func.func private @declared(f32) -> f32
// public functions stay
// CHECK: func.func @other
func.func @other() { func.return }
