// Groups of any form, channels, and what HLO has no attribute for: all_to_all from one dimension to another.
// RUN: heron fmt %s | filecheck %s
// CHECK: (f32[4,6]{1,0}, f32[4,6]{1,0}) all-reduce(%a, %a), channel_id=1, replica_groups={{[{][{]}}0,2},{1,3,4}}, use_global_device_ids=true, to_apply=%maximum_f32
// CHECK: all-reduce(%b), replica_groups={}, to_apply=%add_s32
// CHECK: f32[8,6]{1,0} all-gather(%a), channel_id=2, replica_groups={{[{][{]}}0,1},{2,3}}, dimensions={0}, use_global_device_ids=true
// CHECK: f32[4,3]{1,0} reduce-scatter(%a), channel_id=3, replica_groups={{[{][{]}}0,1},{2,3}}, dimensions={1}, to_apply=%add_f32
// CHECK: f32[2,2,6]{2,1,0} all-to-all(%{{.*}}), replica_groups={{[{][{]}}0,1}}, dimensions={0}
// CHECK-NEXT: f32[2,2,6]{2,1,0} transpose(%{{.*}}), dimensions={1,0,2}
// CHECK-NEXT: f32[2,12]{1,0} reshape
// CHECK: collective-permute(%a), channel_id=4, source_target_pairs={{[{][{]}}0,1},{1,0}}
// CHECK: collective-broadcast(%a), replica_groups={{[{][{]}}1,0}}
module @collectives {
  func.func @main(%a: tensor<4x6xf32>, %b: tensor<4xi32>) -> (tensor<4x6xf32>, tensor<4xi32>, tensor<8x6xf32>, tensor<4x3xf32>, tensor<2x12xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
    %0:2 = "stablehlo.all_reduce"(%a, %a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, -1], [1, 3, 4]]> : tensor<2x3xi64>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.maximum %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
    %1 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x6xf32>) -> tensor<8x6xf32>
    %2 = "stablehlo.reduce_scatter"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 1 : i64}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<4x6xf32>) -> tensor<4x3xf32>
    %3 = "stablehlo.all_to_all"(%a) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x6xf32>) -> tensor<2x12xf32>
    %4 = "stablehlo.collective_permute"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %5 = "stablehlo.collective_broadcast"(%a) <{replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %6 = "stablehlo.all_reduce"(%b) <{replica_groups = dense<> : tensor<0x0xi64>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %z = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %z : tensor<i32>
    }) : (tensor<4xi32>) -> tensor<4xi32>
    return %0#1, %6, %1, %2, %3, %4, %5, %0#0 : tensor<4x6xf32>, tensor<4xi32>, tensor<8x6xf32>, tensor<4x3xf32>, tensor<2x12xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
  }
}
