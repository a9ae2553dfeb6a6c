// RUN: heron codegen opt %s -p vectorize-loads-stores --target gpu | filecheck %s
// RUN: heron codegen opt %s -p vectorize-loads-stores --target cpu | filecheck %s --check-prefix CPU

// CPU-NOT: vector.
// CHECK-LABEL: func.func @k
func.func @k(%a: tensor<1024xf32>, %b: tensor<1024xf32>, %out: tensor<1024xf32>, %t: index, %c: i1) -> tensor<1024xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  // CHECK: %[[START:.*]] = xla_gpu.apply_indexing "(d0) -> (d0 * 4), domain: d0 in [0, 255]"(%t)
  // CHECK: %[[A:.*]] = vector.transfer_read %a[%[[START]]]
  // CHECK-NOT: transfer_read
  // CHECK: %[[R:.*]] = scf.for %s = {{.*}} iter_args(%o = %{{.*}}) -> (vector<4xf32>)
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%o = %out) -> (tensor<1024xf32>) {
    %i = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 255], d1 in [0, 3]"(%t, %s)
    %j = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 3 + d1), domain: d0 in [0, 255], d1 in [0, 3]"(%t, %s)
    // CHECK: vector.extract %[[A]][%s]
    %x = tensor.extract %a[%i] : tensor<1024xf32>
    // a start that is no multiple of four, and a read under a condition, stay
    // CHECK: tensor.extract %b[%{{.*}}]
    %y = tensor.extract %b[%j] : tensor<1024xf32>
    // CHECK: tensor.extract %b[%{{.*}}]
    %z = scf.if %c -> (f32) {
      %v = tensor.extract %b[%i] : tensor<1024xf32>
      scf.yield %v : f32
    } else {
      scf.yield %zero : f32
    }
    %xy = arith.addf %x, %y : f32
    %xyz = arith.addf %xy, %z : f32
    // CHECK: vector.insert %xyz, %o [%s]
    %n = tensor.insert %xyz into %o[%i] : tensor<1024xf32>
    scf.yield %n : tensor<1024xf32>
  }
  // CHECK: %[[W:.*]] = vector.transfer_write %[[R]], %out[%[[START]]]
  // CHECK: func.return %[[W]]
  func.return %r : tensor<1024xf32>
}

// what the loop reads back, and complex numbers, stay
// CHECK-LABEL: func.func @stays
// CHECK-NOT: vector.
func.func @stays(%p: tensor<64xcomplex<f32>>, %out: tensor<64xf32>, %t: index) -> tensor<64xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%o = %out) -> (tensor<64xf32>) {
    %v = tensor.extract %o[%s] : tensor<64xf32>
    %q = tensor.extract %p[%s] : tensor<64xcomplex<f32>>
    %x = complex.re %q : complex<f32>
    %w = arith.addf %x, %v : f32
    %n = tensor.insert %w into %o[%s] : tensor<64xf32>
    scf.yield %n : tensor<64xf32>
  }
  func.return %r : tensor<64xf32>
}

// what is less than a byte is a byte in memory
// CHECK-LABEL: func.func @bits
// CHECK: vector.transfer_read %a[%{{.*}}], %{{.*}} {in_bounds = [true]} : tensor<64xi1>, vector<4xi8>
// CHECK: vector.extract
// CHECK-NEXT: arith.cmpi ne, %{{.*}}, %{{.*}} : i8
// CHECK: arith.extui %w : i4 to i8
// CHECK-NEXT: vector.insert
// CHECK: vector.transfer_write %{{.*}}, %out[%{{.*}}] {in_bounds = [true]} : vector<4xi8>, tensor<64xi4>
func.func @bits(%a: tensor<64xi1>, %out: tensor<64xi4>, %t: index) -> tensor<64xi4> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %s = %c0 to %c4 step %c1 iter_args(%o = %out) -> (tensor<64xi4>) {
    %i = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 4 + d1), domain: d0 in [0, 15], d1 in [0, 3]"(%t, %s)
    %v = tensor.extract %a[%i] : tensor<64xi1>
    %w = arith.extui %v : i1 to i4
    %n = tensor.insert %w into %o[%i] : tensor<64xi4>
    scf.yield %n : tensor<64xi4>
  }
  func.return %r : tensor<64xi4>
}
