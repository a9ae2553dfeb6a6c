// Bounded dimensions; a dynamic_reshape takes each size as an operand of its own.
// RUN: heron fmt %s | filecheck %s
// CHECK: ENTRY %main (a: f32[<=8,4], n: s32[], m: f32[8,4], sizes: s32[2])
// CHECK: f32[<=8,4]{1,0} add(%a, %a)
// CHECK: s32[] get-dimension-size(%a), dimensions={0}
// CHECK: f32[<=8,4]{1,0} set-dimension-size(%m, %n), dimensions={0}
// CHECK: f32[<=16,2]{1,0} dynamic-reshape(%a, %reshape, %reshape.1)
// CHECK: f32[4]{0} reduce(%add, %constant), dimensions={0}, to_apply=%add_f32
module @bounded {
  func.func @main(%a: tensor<?x4xf32, #stablehlo.bounds<8, ?>>, %n: tensor<i32>, %m: tensor<8x4xf32>, %sizes: tensor<2xi32>) -> (tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<i32>, tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<?x2xf32, #stablehlo.bounds<16, ?>>, tensor<4xf32>) {
    %0 = stablehlo.add %a, %a : tensor<?x4xf32, #stablehlo.bounds<8, ?>>
    %1 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<?x4xf32, #stablehlo.bounds<8, ?>>) -> tensor<i32>
    %2 = stablehlo.set_dimension_size %m, %n, dim = 0 : (tensor<8x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<8, ?>>
    %3 = stablehlo.dynamic_reshape %a, %sizes : (tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<2xi32>) -> tensor<?x2xf32, #stablehlo.bounds<16, ?>>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %4 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<f32>) -> tensor<4xf32>
    return %0, %1, %2, %3, %4 : tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<i32>, tensor<?x4xf32, #stablehlo.bounds<8, ?>>, tensor<?x2xf32, #stablehlo.bounds<16, ?>>, tensor<4xf32>
  }
}
