// RUN: heron codegen opt %s -p pipeline-loads --target gpu | filecheck %s

// the first round's load stands before the loop, the loop has the next one's, the last round clamps
// CHECK-LABEL: func.func @sum
// CHECK: %[[FIRST:.*]] = tensor.extract %t[%{{.*}}] : tensor<32xf32>
// CHECK: %[[END:.*]] = arith.constant 7 : index
// CHECK: scf.for %[[K:.*]] = %{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[V:.*]] = %[[FIRST]]) -> (f32, f32) {
// CHECK-NEXT: %[[AHEAD:.*]] = arith.addi %[[K]], %{{.*}} : index
// CHECK-NEXT: %[[NEXT:.*]] = arith.minsi %[[AHEAD]], %[[END]] : index
// CHECK-NEXT: %[[AT:.*]] = arith.muli %[[NEXT]], %{{.*}} : index
// CHECK-NEXT: %[[W:.*]] = tensor.extract %t[%[[AT]]] : tensor<32xf32>
// CHECK: %[[N:.*]] = arith.addf %[[S]], %[[V]] : f32
// CHECK-NEXT: scf.yield %[[N]], %[[W]] : f32, f32
func.func @sum(%t: tensor<32xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %a = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f32) {
    %i = arith.muli %k, %c4 : index
    %v = tensor.extract %t[%i] : tensor<32xf32>
    %n = arith.addf %s, %v : f32
    scf.yield %n : f32
  }
  func.return %a : f32
}

// a tensor that the loop writes, an index that is loaded, a trip count that is not known, and more bytes than room
// CHECK-LABEL: func.func @stay
// CHECK-NOT: arith.minsi
func.func @stay(%t: tensor<32xf32>, %p: tensor<32xindex>, %n: index, %w: tensor<512xf32>) -> (tensor<32xf32>, f32, f32, vector<32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<32xf32>
  %a = scf.for %k = %c0 to %c8 step %c1 iter_args(%x = %t) -> (tensor<32xf32>) {
    %v = tensor.extract %x[%k] : tensor<32xf32>
    %y = tensor.insert %v into %x[%k] : tensor<32xf32>
    scf.yield %y : tensor<32xf32>
  }
  %b = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
    %v = tensor.extract %t[%k] : tensor<32xf32>
    %m = arith.addf %s, %v : f32
    scf.yield %m : f32
  }
  %c = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) {
    %i = tensor.extract %p[%k] : tensor<32xindex>
    %v = tensor.extract %t[%i] : tensor<32xf32>
    %m = arith.addf %s, %v : f32
    scf.yield %m : f32
  }
  %d = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zeros) -> (vector<32xf32>) {
    %v = vector.transfer_read %w[%k], %zero {in_bounds = [true]} : tensor<512xf32>, vector<32xf32>
    %m = arith.addf %s, %v : vector<32xf32>
    scf.yield %m : vector<32xf32>
  }
  func.return %a, %b, %c, %d : tensor<32xf32>, f32, f32, vector<32xf32>
}

// the index is loaded in time, what it points to is not
// CHECK-LABEL: func.func @indirect
// CHECK: scf.for {{.*}} -> (f32, index) {
// CHECK: tensor.extract %p[
// CHECK-NEXT: %[[V:.*]] = tensor.extract %t[%{{.*}}] : tensor<32xf32>
func.func @indirect(%t: tensor<32xf32>, %p: tensor<32xindex>) -> f32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %a = scf.for %k = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f32) {
    %i = tensor.extract %p[%k] : tensor<32xindex>
    %v = tensor.extract %t[%i] : tensor<32xf32>
    %m = arith.addf %s, %v : f32
    scf.yield %m : f32
  }
  func.return %a : f32
}
