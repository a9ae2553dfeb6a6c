sdy.mesh @mesh = <["x"=1]>

func.func private @annotations(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  sdy.sharding_group %a group_id=3 : tensor<4x6xf32>
  %0 = sdy.propagation_barrier %a allowed_direction=NONE : tensor<4x6xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<4x6xf32>
  %2 = sdy.constant dense<1.0> : tensor<4x6xf32>
  %3 = stablehlo.add %1, %2 : tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}
