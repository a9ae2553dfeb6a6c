// RUN: heron codegen opt %s -p lower-math-gpu --target gpu | filecheck %s --check-prefix GPU
// RUN: heron codegen opt %s -p lower-math-cpu --target cpu | filecheck %s --check-prefix CPU

// GPU: func.call @__nv_tanhf(%x)
// CPU: func.call @heron.tanh.f32(%x)
func.func @k(%x: f32) -> f32 {
  %y = math.tanh %x : f32
  func.return %y : f32
}
