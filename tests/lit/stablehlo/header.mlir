// What is said of the module and of main's arguments and results.
// RUN: heron fmt %s | filecheck %s
// CHECK: HloModule header, input_output_alias={ {1}: (0, {}, may-alias) }, buffer_donor={ (1, {}) },
// CHECK-SAME: entry_computation_layout={(f32[4]{0}, f32[4]{0}, f32[2,3]{0,1}, f32[2,3]{1,0:S(5)})->(f32[4]{0}, f32[4]{0}, f32[2,3]{0,1:T(2,128)S(5)})},
// CHECK-SAME: replica_count=2, frontend_attributes={note="one"}
// CHECK: ROOT %tuple = (f32[4]{0}, f32[4]{0}, f32[2,3]{1,0}) tuple(%b, %a, %subtract)
module @header attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32, mhlo.frontend_attributes = {note = "one"}} {
  func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 1 : i32}, %b: tensor<4xf32> {jax.buffer_donor = true},
      %c: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}, %d: tensor<2x3xf32> {mhlo.layout_mode = "default", mhlo.memory_kind = "pinned_host"})
      -> (tensor<4xf32> {jax.result_info = "a"}, tensor<4xf32>, tensor<2x3xf32> {mhlo.layout_mode = "{0,1:T(2,128)}", mhlo.memory_kind = "unpinned_host"}) {
    %0 = stablehlo.subtract %c, %d : tensor<2x3xf32>
    return %b, %a, %0 : tensor<4xf32>, tensor<4xf32>, tensor<2x3xf32>
  }
}
