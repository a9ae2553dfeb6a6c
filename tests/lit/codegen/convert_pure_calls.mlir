// RUN: heron codegen opt %s -p convert-pure-calls | filecheck %s

// CHECK-LABEL: func.func @k
func.func @k(%t: tensor<8xf32>, %i: index, %j: index, %c: i1) -> (f32, f32, f32, f32) {
  // CHECK: %[[A:.*]] = func.call @f(%t, %i)
  // CHECK-NEXT: %[[J:.*]] = func.call @f(%t, %j)
  %a = xla_gpu.pure_call @f(%t, %i) : (tensor<8xf32>, index) -> f32
  %b = xla_gpu.pure_call @f(%t, %j) : (tensor<8xf32>, index) -> f32
  %again = xla_gpu.pure_call @f(%t, %i) : (tensor<8xf32>, index) -> f32
  // in a branch the call before it serves, and another function is another value
  // CHECK: scf.if
  // CHECK-NEXT: %[[G:.*]] = func.call @g(%t, %i)
  // CHECK-NEXT: arith.addf %[[A]], %[[G]]
  // CHECK-NOT: call
  // CHECK: } else {
  %r = scf.if %c -> (f32) {
    %x = xla_gpu.pure_call @f(%t, %i) : (tensor<8xf32>, index) -> f32
    %y = xla_gpu.pure_call @g(%t, %i) : (tensor<8xf32>, index) -> f32
    %s = arith.addf %x, %y : f32
    scf.yield %s : f32
  } else {
    scf.yield %a : f32
  }
  // what a branch called does not serve after it
  // CHECK: %[[H:.*]] = func.call @g(%t, %i)
  // CHECK-NEXT: func.return %[[A]], %[[J]], %{{.*}}, %[[H]]
  %h = xla_gpu.pure_call @g(%t, %i) : (tensor<8xf32>, index) -> f32
  func.return %again, %b, %r, %h : f32, f32, f32, f32
}
func.func private @f(tensor<8xf32>, index) -> f32
func.func private @g(tensor<8xf32>, index) -> f32
