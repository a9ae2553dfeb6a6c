func.func private @broadcast_add(%a: tensor<4x6xf32>, %v: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_add %a, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @broadcast_and(%p: tensor<4x6xi1>, %t: tensor<i1>) -> tensor<4x6xi1> {
  %r = chlo.broadcast_and %p, %t : (tensor<4x6xi1>, tensor<i1>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

func.func private @broadcast_floats(%x: tensor<4x6xf32>, %v: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %0 = chlo.broadcast_atan2 %x, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %1 = chlo.broadcast_divide %x, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %2 = chlo.broadcast_maximum %v, %x : (tensor<6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %3 = chlo.broadcast_minimum %v, %x : (tensor<6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %4 = chlo.broadcast_multiply %v, %x : (tensor<6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %5 = chlo.broadcast_next_after %x, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %6 = chlo.broadcast_power %x, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %7 = chlo.broadcast_remainder %x, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  %8 = chlo.broadcast_subtract %x, %v {broadcast_dimensions = array<i64: 1>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

func.func private @broadcast_integers(%i: tensor<4x6xi32>, %k: tensor<i32>) -> (tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>) {
  %0 = chlo.broadcast_or %i, %k : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
  %1 = chlo.broadcast_shift_left %i, %k : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
  %2 = chlo.broadcast_shift_right_arithmetic %i, %k : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
  %3 = chlo.broadcast_shift_right_logical %k, %i : (tensor<i32>, tensor<4x6xi32>) -> tensor<4x6xi32>
  %4 = chlo.broadcast_xor %i, %k : (tensor<4x6xi32>, tensor<i32>) -> tensor<4x6xi32>
  return %0, %1, %2, %3, %4 : tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>, tensor<4x6xi32>
}

func.func private @broadcast_compare(%a: tensor<4x6xf32>, %v: tensor<6xf32>) -> (tensor<4x6xi1>, tensor<4x6xi1>) {
  %0 = chlo.broadcast_compare %a, %v {comparison_direction = #chlo<comparison_direction LT>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  %1 = chlo.broadcast_compare %a, %v {compare_type = #chlo<comparison_type TOTALORDER>, comparison_direction = #chlo<comparison_direction GE>} : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xi1>
  return %0, %1 : tensor<4x6xi1>, tensor<4x6xi1>
}

func.func private @broadcast_complex(%a: tensor<4x6xf32>, %v: tensor<6xf32>) -> tensor<4x6xcomplex<f32>> {
  %r = chlo.broadcast_complex %a, %v : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}

func.func private @broadcast_select(%t: tensor<i1>, %a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<4x6xf32> {
  %r = chlo.broadcast_select %t, %a, %s : (tensor<i1>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @broadcast_special(%x: tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %z = chlo.constant dense<2.0> : tensor<f32>
  %0 = chlo.broadcast_zeta %z, %x : (tensor<f32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = chlo.broadcast_polygamma %z, %x : (tensor<f32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = "chlo.constant_like"(%x) <{value = 3.0 : f32}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = chlo.zeta %y, %x : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
  %3 = chlo.polygamma %y, %x : tensor<4x6xf32>, tensor<4x6xf32> -> tensor<4x6xf32>
  return %0, %1, %2, %3 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}

func.func private @infinities(%a: tensor<4x6xf32>) -> (tensor<4x6xi1>, tensor<4x6xi1>, tensor<4x6xi1>) {
  %y = stablehlo.constant dense<0.0> : tensor<4x6xf32>
  %z = stablehlo.divide %a, %y : tensor<4x6xf32>
  %0 = chlo.is_inf %z : tensor<4x6xf32> -> tensor<4x6xi1>
  %1 = chlo.is_pos_inf %z : tensor<4x6xf32> -> tensor<4x6xi1>
  %2 = chlo.is_neg_inf %z : tensor<4x6xf32> -> tensor<4x6xi1>
  return %0, %1, %2 : tensor<4x6xi1>, tensor<4x6xi1>, tensor<4x6xi1>
}

func.func private @top_k(%a: tensor<4x6xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  %r:2 = chlo.top_k(%a, k = 2) : tensor<4x6xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %r#0, %r#1 : tensor<4x2xf32>, tensor<4x2xi32>
}
