// An approximate top-k, where no hardware has one, is an exact one, along any dimension; any other order is a sort.
// RUN: heron fmt %s | filecheck %s
// CHECK: ENTRY %main
// CHECK: topk(%x), k=2, largest=true
// CHECK: [[turned:%[a-z0-9.-]+]] = f32[6,4]{1,0} transpose(%x), dimensions={1,0}
// CHECK: topk([[turned]]), k=1, largest=false
// CHECK: s32[1,6]{1,0} transpose({{.*}}), dimensions={1,0}
// CHECK: sort(%x, %other), dimensions={1}, is_stable=true
// CHECK: slice={[0:4], [0:2]}
module @approximate {
  func.func @larger(%a: tensor<f32>, %b: tensor<f32>, %m: tensor<i32>, %n: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func @smaller(%a: tensor<f32>, %b: tensor<f32>, %m: tensor<i32>, %n: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %b, %a : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func @main(%x: tensor<4x6xf32>, %other: tensor<4x6xi32>) -> (tensor<4x2xf32>, tensor<4x2xi32>, tensor<1x6xf32>, tensor<1x6xi32>, tensor<4x2xf32>, tensor<4x2xi32>) {
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %nowhere = stablehlo.constant dense<-1> : tensor<i32>
    %columns = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %rows = stablehlo.iota dim = 0 : tensor<4x6xi32>
    %0:2 = stablehlo.custom_call @ApproxTopK(%x, %columns, %none, %nowhere) {called_computations = [@larger], mhlo.backend_config = {is_fallback = true, reduction_dim = 1 : i64, top_k = 2 : i64}} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
    %1:2 = stablehlo.custom_call @ApproxTopK(%x, %rows, %none, %nowhere) {called_computations = [@smaller], mhlo.backend_config = {is_fallback = true, reduction_dim = 0 : i64, top_k = 1 : i64}} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<1x6xf32>, tensor<1x6xi32>)
    %2:2 = stablehlo.custom_call @ApproxTopK(%x, %other, %none, %nowhere) {called_computations = [@larger], mhlo.backend_config = {is_fallback = true, reduction_dim = 1 : i64, top_k = 2 : i64}} : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
    return %0#0, %0#1, %1#0, %1#1, %2#0, %2#1 : tensor<4x2xf32>, tensor<4x2xi32>, tensor<1x6xf32>, tensor<1x6xi32>, tensor<4x2xf32>, tensor<4x2xi32>
  }
}
