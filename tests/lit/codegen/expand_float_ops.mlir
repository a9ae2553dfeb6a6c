// RUN: heron codegen opt %s -p expand-float-ops --target gpu | filecheck %s --check-prefix GPU
// RUN: heron codegen opt %s -p expand-float-ops --target cpu | filecheck %s --check-prefix CPU

// f8 computes in f32 everywhere, bf16 on the CPU only
// GPU: arith.addf %{{.*}} : f32
// GPU: arith.truncf %{{.*}} : f32 to f8E4M3FN
// GPU: arith.mulf %c, %d : bf16
// CPU: arith.mulf %{{.*}} : f32
func.func @k(%a: f8E4M3FN, %b: f8E4M3FN, %c: bf16, %d: bf16) -> (f8E4M3FN, bf16) {
  %s = arith.addf %a, %b : f8E4M3FN
  %p = arith.mulf %c, %d : bf16
  func.return %s, %p : f8E4M3FN, bf16
}
