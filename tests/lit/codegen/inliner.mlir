// RUN: heron codegen opt %s -p inliner --inline-ops 2 | filecheck %s

// one call: moved, however large; two calls: the first gets a copy if the function is small
// CHECK: func.func @k(%x: f32) -> f32
// CHECK-NEXT: %[[S:.*]] = math.sin %x
// CHECK-NEXT: %[[C:.*]] = math.cos %[[S]]
// CHECK-NEXT: %[[T:.*]] = math.tan %[[C]]
// CHECK-NEXT: %[[E:.*]] = math.exp %[[T]]
// CHECK-NEXT: %[[F:.*]] = math.exp %[[E]]
// CHECK-NEXT: %[[A:.*]] = xla_gpu.pure_call @large_twice(%[[F]])
// CHECK-NEXT: %[[B:.*]] = xla_gpu.pure_call @large_twice(%[[A]])
// CHECK-NEXT: func.return %[[B]]
func.func @k(%x: f32) -> f32 {
  %a = xla_gpu.pure_call @large_once(%x) : (f32) -> f32
  %b = xla_gpu.pure_call @small(%a) : (f32) -> f32
  %c = xla_gpu.pure_call @small(%b) : (f32) -> f32
  %d = xla_gpu.pure_call @large_twice(%c) : (f32) -> f32
  %e = xla_gpu.pure_call @large_twice(%d) : (f32) -> f32
  func.return %e : f32
}
// the last call of a function takes the function itself
// CHECK-NOT: @large_once
// CHECK-NOT: @small
// CHECK: func.func private @large_twice
func.func private @large_once(%x: f32) -> f32 {
  %a = math.sin %x : f32
  %b = math.cos %a : f32
  %c = math.tan %b : f32
  func.return %c : f32
}
func.func private @small(%x: f32) -> f32 {
  %a = math.exp %x : f32
  func.return %a : f32
}
func.func private @large_twice(%x: f32) -> f32 {
  %a = math.sin %x : f32
  %b = math.cos %a : f32
  func.return %b : f32
}
