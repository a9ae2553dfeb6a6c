// RUN: heron codegen opt %s -p peel-loops --target gpu | filecheck %s
// RUN: heron codegen opt %s -p peel-loops --target cpu | filecheck %s --check-prefix CPU

// CPU-COUNT-1: xla_gpu.loop
// CPU-NOT: xla_gpu.loop

// the first loop has no bound, the second one round and goes on with what the first leaves
// CHECK: %[[W:.*]], %[[X:.*]] = xla_gpu.loop (%i)[%{{.*}}, %{{.*}}] -> () in "(d0)[s0, s1] -> (), domain: d0 in [0, 127], s0 in [0, 6], s1 in [0, 3]" iter_args(%{{.*}} = %v, %{{.*}} = %v)
// CHECK: arith.addf %{{.*}}, %v
// CHECK: %[[R:.*]], %[[S:.*]] = xla_gpu.loop (%i)[%{{.*}}, %{{.*}}] -> () in "(d0)[s0, s1] -> (), domain: d0 in [0, 127], s0 in [7, 7], s1 in [0, 3], d0 + s0 * 128 in [0, 999]" iter_args(%{{.*}} = %[[W]], %{{.*}} = %[[X]])
// CHECK: arith.addf %{{.*}}, %v
// CHECK: func.return %[[R]], %[[S]]
func.func @rounds(%i: index, %v: f32) -> (f32, f32) {
  %r, %q = xla_gpu.loop (%i)[%s, %e] -> () in "(d0)[s0, s1] -> (), domain: d0 in [0, 127], s0 in [0, 7], s1 in [0, 3], d0 + s0 * 128 in [0, 999]" iter_args(%c = %v, %d = %v) -> (f32, f32) {
    %n = arith.addf %c, %v : f32
    xla_gpu.yield %n, %d : f32, f32
  }
  func.return %r, %q : f32, f32
}
