// RUN: heron codegen opt %s -p lower-xla-gpu-to-scf --target gpu | filecheck %s --check-prefix GPU
// RUN: heron codegen opt %s -p lower-xla-gpu-to-scf --target cpu | filecheck %s --check-prefix CPU

// a bound on the symbol is a test in the GPU's loop, the end of the CPU's
// GPU: scf.for %[[S:.*]] = %{{.*}} to %{{.*}}
// GPU: scf.if
// GPU: tensor.insert
// CPU: arith.minsi
// CPU: scf.for
// CPU-NOT: scf.if
func.func @k(%i: index, %v: f32, %t: tensor<10xf32>) -> tensor<10xf32> {
  %r = xla_gpu.loop (%i)[%s] -> (%at) in "(d0)[s0] -> (d0 * 4 + s0), domain: d0 in [0, 2], s0 in [0, 3], d0 * 4 + s0 in [0, 9]" iter_args(%c = %t) -> (tensor<10xf32>) {
    %n = tensor.insert %v into %c[%at] : tensor<10xf32>
    xla_gpu.yield %n : tensor<10xf32>
  }
  func.return %r : tensor<10xf32>
}
