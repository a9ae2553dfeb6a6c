// RUN: heron codegen opt %s -p peel-loops --target gpu | filecheck %s

// a bound that breaks in more than the last round, one on an inner symbol, one without symbols, two rounds
// CHECK-COUNT-4: xla_gpu.loop
// CHECK-NOT: xla_gpu.loop
func.func @stay(%i: index, %v: f32) -> (f32, f32, f32, f32) {
  %a = xla_gpu.loop (%i)[%s] -> () in "(d0)[s0] -> (), domain: d0 in [0, 127], s0 in [0, 7], d0 + s0 * 128 in [0, 800]" iter_args(%c = %v) -> (f32) {
    xla_gpu.yield %c : f32
  }
  %b = xla_gpu.loop (%i)[%s, %t] -> () in "(d0)[s0, s1] -> (), domain: d0 in [0, 127], s0 in [0, 7], s1 in [0, 7], d0 + s1 * 128 in [0, 999]" iter_args(%c = %v) -> (f32) {
    xla_gpu.yield %c : f32
  }
  %d = xla_gpu.loop (%i)[%s] -> () in "(d0)[s0] -> (), domain: d0 in [0, 127], s0 in [0, 7], d0 in [0, 99]" iter_args(%c = %v) -> (f32) {
    xla_gpu.yield %c : f32
  }
  %e = xla_gpu.loop (%i)[%s] -> () in "(d0)[s0] -> (), domain: d0 in [0, 127], s0 in [0, 1], d0 + s0 * 128 in [0, 199]" iter_args(%c = %v) -> (f32) {
    xla_gpu.yield %c : f32
  }
  func.return %a, %b, %d, %e : f32, f32, f32, f32
}
