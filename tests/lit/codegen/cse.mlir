// RUN: heron codegen opt %s -p cse | filecheck %s

// CHECK-LABEL: func.func @k
// CHECK-NEXT: %[[A:.*]] = arith.addf %x, %y
// CHECK-NEXT: %[[E:.*]] = tensor.extract %t[%i]
// CHECK-NEXT: %[[F:.*]] = tensor.extract %t[%i]
// CHECK-NEXT: func.return %[[A]], %[[A]], %[[E]], %[[F]]
func.func @k(%t: tensor<4xf32>, %i: index, %x: f32, %y: f32) -> (f32, f32, f32, f32) {
  %a = arith.addf %x, %y : f32
  %b = arith.addf %y, %x : f32
  %dead = math.exp %b : f32
  %e = tensor.extract %t[%i] : tensor<4xf32>
  %f = tensor.extract %t[%i] : tensor<4xf32>
  func.return %a, %b, %e, %f : f32, f32, f32, f32
}
