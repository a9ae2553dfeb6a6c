// Shardy's operations are the calls XLA knows them by; both kinds of shardings stay with their values.
// RUN: heron fmt %s | filecheck %s
// CHECK: num_partitions=4, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=2]>}}
// CHECK: %xla.sdy.manual_computation_body (l: f32[4,4]) -> f32[4,4] {
// CHECK: %a = f32[8,4]{1,0} parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}, {}]>"}
// CHECK: () custom-call(%a), custom_call_target="xla.sdy.ShardingGroup", custom_call_has_side_effect=true, frontend_attributes={xla.sdy.sharding_group_id="3 : i64"}
// CHECK: custom_call_target="xla.sdy.PropagationBarrier", frontend_attributes={xla.sdy.allowed_direction="NONE"}
// CHECK: custom_call_target="Sharding", sharding={devices=[2,2]<=[4]}, frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\", ?}]>]>"}
// CHECK: custom_call_target="Sharding", sharding={replicated}
// CHECK: f32[4,4]{1,0} custom-call(%{{.*}}), custom_call_target="xla.sdy.GlobalToLocalShape"
// CHECK: f32[4,4]{1,0} call(%{{.*}}), to_apply=%xla.sdy.manual_computation_body
// CHECK: f32[8,4]{1,0} custom-call(%call), custom_call_target="xla.sdy.LocalToGlobalShape"
// CHECK: custom_call_target="Sharding", sharding={mesh['x'=2,'y'=2], [{'x'}, {}]}
// CHECK: f32[8,4]{1,0} call(%{{.*}}), to_apply=%doubled
// CHECK: custom_call_target="Sharding", sharding={mesh['x'=2,'y'=2], [{'x'}, {}]}
// CHECK: add(%{{.*}}), frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"y\"}]>]>"}
// CHECK: multiply(%{{.*}}), sharding={devices=[2,2]<=[4]}
// CHECK: custom_call_target="Sharding", sharding={replicated}
// CHECK: ROOT %{{.*}} = f32[8,4]{1,0} custom-call(%{{.*}}), custom_call_target="xla.sdy.FuncResultSharding", sharding={devices=[2,1,2]<=[4] last_tile_dim_replicate}, frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>"}
module @sharded attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
    sdy.sharding_group %a group_id=3 : tensor<8x4xf32>
    %0 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<8x4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y", ?}]> : tensor<8x4xf32>
    %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<8x4xf32>
    %3 = sdy.data_flow_edge %2 sharding=<@mesh, [{"x"}, {}]> : tensor<8x4xf32>
    %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%l: tensor<4x4xf32>) {
      %z = "stablehlo.all_reduce"(%l) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      sdy.return %z : tensor<4x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %5 = sdy.named_computation<"doubled">(%4) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] (%l: tensor<8x4xf32>) {
      %z = stablehlo.add %l, %l : tensor<8x4xf32>
      sdy.return %z : tensor<8x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %6 = stablehlo.add %5, %5 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x4xf32>
    %7 = stablehlo.multiply %6, %6 {mhlo.sharding = "{devices=[2,2]<=[4]}"} : tensor<8x4xf32>
    %8 = stablehlo.custom_call @Sharding(%7) {mhlo.sharding = "{replicated}"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %8 : tensor<8x4xf32>
  }
}
