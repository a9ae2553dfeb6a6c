// Every API version, both kinds of configuration, layouts, aliases, called functions, side effects and tokens.
// RUN: heron fmt %s | filecheck %s
// CHECK: () custom-call(%a), custom_call_target="effect", custom_call_has_side_effect=true
// CHECK: custom_call_target="original", backend_config="text \"quoted\""
// CHECK: custom_call_target="status", custom_call_has_side_effect=true, api_version=API_VERSION_STATUS_RETURNING
// CHECK: custom_call_target="unified", api_version=API_VERSION_STATUS_RETURNING_UNIFIED, called_computations={%callee}
// CHECK: f32[2,3]{0,1} custom-call(%a), custom_call_target="typed", operand_layout_constraints={f32[2,3]{0,1}}, api_version=API_VERSION_TYPED_FFI, backend_config={algorithm = "fast", sizes = array<i64: 1, 2>, scale = 1.5 : f32}
// CHECK: custom_call_target="aliased", output_to_operand_aliasing={{[{][{]}}1}: (0, {})}
// CHECK: (f32[2,3]{1,0}, token[]) custom-call(%after-all, %a), custom_call_target="ordered", operand_layout_constraints={token[], f32[2,3]{1,0}}, custom_call_has_side_effect=true
module @custom_calls {
  func.func private @callee(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
    return %x : tensor<2x3xf32>
  }
  func.func @main(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.custom_call @original(%a) {backend_config = "text \22quoted\22"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %1 = stablehlo.custom_call @status(%a) {api_version = 2 : i32, has_side_effect = true} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %2 = stablehlo.custom_call @unified(%a) {api_version = 3 : i32, called_computations = [@callee]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = stablehlo.custom_call @typed(%a) {api_version = 4 : i32, backend_config = {algorithm = "fast", sizes = array<i64: 1, 2>, scale = 1.5 : f32}, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %4:2 = stablehlo.custom_call @aliased(%a) {output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
    stablehlo.custom_call @effect(%a) {has_side_effect = true} : (tensor<2x3xf32>) -> ()
    %t = stablehlo.create_token : !stablehlo.token
    %5:2 = stablehlo.custom_call @ordered(%t, %a) {has_side_effect = true, operand_layouts = [dense<> : tensor<0xindex>, dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (!stablehlo.token, tensor<2x3xf32>) -> (tensor<2x3xf32>, !stablehlo.token)
    return %0, %1, %2, %3, %4#1, %5#0 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  }
}
