func.func private @all_gather(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @all_reduce(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %z = stablehlo.add %l, %o : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @all_to_all(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.all_to_all"(%a) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @batch_norm_grad(%v: tensor<6xf32>, %image: tensor<2x5x6x4xf32>) -> (tensor<2x5x6x4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %sc = stablehlo.slice %v [0:4] : (tensor<6xf32>) -> tensor<4xf32>
  %r:3 = "stablehlo.batch_norm_grad"(%image, %sc, %sc, %sc, %image) <{epsilon = 9.0 : f32, feature_index = 3 : i64}> : (tensor<2x5x6x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x5x6x4xf32>) -> (tensor<2x5x6x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1, %r#2 : tensor<2x5x6x4xf32>, tensor<4xf32>, tensor<4xf32>
}

func.func private @batch_norm_inference(%a: tensor<4x6xf32>, %v: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.batch_norm_inference"(%a, %v, %v, %v, %v) <{epsilon = 9.0 : f32, feature_index = 1 : i64}> : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @batch_norm_training(%a: tensor<4x6xf32>, %v: tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %v, %v) <{epsilon = 0.1 : f32, feature_index = 1 : i64}> : (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %r#0, %r#1, %r#2 : tensor<4x6xf32>, tensor<6xf32>, tensor<6xf32>
}

func.func private @bitcast_convert(%a: tensor<4x6xf32>) -> tensor<4x6xi32> {
  %r = stablehlo.bitcast_convert %a : (tensor<4x6xf32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

func.func private @bitcast_convert_1(%a: tensor<4x6xf32>) -> tensor<4x6x2xui16> {
  %r = stablehlo.bitcast_convert %a : (tensor<4x6xf32>) -> tensor<4x6x2xui16>
  return %r : tensor<4x6x2xui16>
}

func.func private @bitcast_convert_2(%a: tensor<4x6xf32>) -> tensor<4x3xf64> {
  %z = stablehlo.reshape %a : (tensor<4x6xf32>) -> tensor<4x3x2xf32>
  %r = stablehlo.bitcast_convert %z : (tensor<4x3x2xf32>) -> tensor<4x3xf64>
  return %r : tensor<4x3xf64>
}

func.func private @broadcast(%v: tensor<6xf32>) -> tensor<2x6xf32> {
  %r = stablehlo.broadcast %v, sizes = [2] : (tensor<6xf32>) -> tensor<2x6xf32>
  return %r : tensor<2x6xf32>
}

func.func private @broadcast_in_dim(%v: tensor<6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @broadcast_in_dim_1(%s: tensor<f32>) -> tensor<4x6xf32> {
  %r = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @broadcast_in_dim_2(%a: tensor<4x6xf32>) -> tensor<6x3x4xf32> {
  %z = stablehlo.slice %a [0:4, 2:3] : (tensor<4x6xf32>) -> tensor<4x1xf32>
  %r = stablehlo.broadcast_in_dim %z, dims = [2, 0] : (tensor<4x1xf32>) -> tensor<6x3x4xf32>
  return %r : tensor<6x3x4xf32>
}

func.func private @case(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %k: tensor<i32>) -> tensor<4x6xf32> {
  %r = "stablehlo.case"(%k) ({
   
    stablehlo.return %a : tensor<4x6xf32>
  }, {
    %z = stablehlo.add %a, %b : tensor<4x6xf32>
    stablehlo.return %z : tensor<4x6xf32>
  }, {
    stablehlo.return %b : tensor<4x6xf32>
  }) : (tensor<i32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @cholesky(%m: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = stablehlo.cholesky %m, lower = true : tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func private @cholesky_1(%m: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %r = "stablehlo.cholesky"(%m) <{lower = false}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func private @clamp(%a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<4x6xf32> {
  %r = stablehlo.clamp %s, %a, %s : (tensor<f32>, tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @clamp_1(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.clamp %b, %a, %x : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @collective_permute(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @compare(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

func.func private @compare_1(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = stablehlo.compare GE, %a, %b, TOTALORDER : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

func.func private @compare_2(%c: tensor<4x6xcomplex<f32>>, %d: tensor<4x6xcomplex<f32>>) -> tensor<4x6xi1> {
  %r = stablehlo.compare NE, %c, %d : (tensor<4x6xcomplex<f32>>, tensor<4x6xcomplex<f32>>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

func.func private @compare_3(%u: tensor<4x6xui8>, %n: tensor<4x6xui8>) -> tensor<4x6xi1> {
  %r = stablehlo.compare GT, %u, %n, UNSIGNED : (tensor<4x6xui8>, tensor<4x6xui8>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

func.func private @complex(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xcomplex<f32>> {
  %r = stablehlo.complex %a, %b : tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}

func.func private @composite(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.composite "our.sum" %a, %b {composite_attributes = {n = 1 : i64}, decomposition = @sum, version = 3 : i32} : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @concatenate(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %r = stablehlo.concatenate %a, %b, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %r : tensor<8x6xf32>
}

func.func private @constant() -> tensor<2x2xf32> {
  %r = stablehlo.constant dense<[[1.5, -0.0], [0x7F800000, 3.0e-3]]> : tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

func.func private @constant_1() -> tensor<3xi8> {
  %r = stablehlo.constant dense<[-128, 0, 127]> : tensor<3xi8>
  return %r : tensor<3xi8>
}

func.func private @constant_2() -> tensor<2xcomplex<f32>> {
  %r = stablehlo.constant dense<[(1.0, 2.0), (-1.0, 0.0)]> : tensor<2xcomplex<f32>>
  return %r : tensor<2xcomplex<f32>>
}

func.func private @constant_3() -> tensor<3xi1> {
  %r = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
  return %r : tensor<3xi1>
}

func.func private @constant_4() -> tensor<0x2xf32> {
  %r = stablehlo.constant dense<> : tensor<0x2xf32>
  return %r : tensor<0x2xf32>
}

func.func private @constant_5() -> tensor<2xi16> {
  %r = stablehlo.constant dense<"0x0100FFFF"> : tensor<2xi16>
  return %r : tensor<2xi16>
}

func.func private @convert(%a: tensor<4x6xf32>) -> tensor<4x6xi32> {
  %r = stablehlo.convert %a : (tensor<4x6xf32>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

func.func private @convert_1(%a: tensor<4x6xf32>) -> tensor<4x6xbf16> {
  %r = stablehlo.convert %a : (tensor<4x6xf32>) -> tensor<4x6xbf16>
  return %r : tensor<4x6xbf16>
}

func.func private @convert_2(%i: tensor<4x6xi32>) -> tensor<4x6xcomplex<f32>> {
  %r = stablehlo.convert %i : (tensor<4x6xi32>) -> tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}

func.func private @convert_3(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = stablehlo.convert %a : (tensor<4x6xf32>) -> tensor<4x6xf8E4M3FN>
  %r = stablehlo.convert %z : (tensor<4x6xf8E4M3FN>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @convert_4(%i: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %z = stablehlo.convert %i : (tensor<4x6xi32>) -> tensor<4x6xi4>
  %r = stablehlo.convert %z : (tensor<4x6xi4>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

func.func private @convolution(%image: tensor<2x5x6x4xf32>, %kernel: tensor<3x2x4x6xf32>) -> tensor<2x3x7x6xf32> {
  %r = stablehlo.convolution(%image, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 2]], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x5x6x4xf32>, tensor<3x2x4x6xf32>) -> tensor<2x3x7x6xf32>
  return %r : tensor<2x3x7x6xf32>
}

func.func private @convolution_1(%image: tensor<2x5x6x4xf32>, %kernel: tensor<3x2x4x6xf32>) -> tensor<2x3x5x12xf32> {
  %z = stablehlo.concatenate %kernel, %kernel, dim = 3 : (tensor<3x2x4x6xf32>, tensor<3x2x4x6xf32>) -> tensor<3x2x4x12xf32>
  %y = stablehlo.slice %z [0:3, 0:2, 0:1, 0:12] : (tensor<3x2x4x12xf32>) -> tensor<3x2x1x12xf32>
  %r = "stablehlo.convolution"(%image, %y) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 4 : i64}> : (tensor<2x5x6x4xf32>, tensor<3x2x1x12xf32>) -> tensor<2x3x5x12xf32>
  return %r : tensor<2x3x5x12xf32>
}

func.func private @create_token(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = stablehlo.create_token : !stablehlo.token
  %r = stablehlo.abs %a : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @after_all(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = stablehlo.create_token : !stablehlo.token
  %y = stablehlo.after_all %z, %z : !stablehlo.token
  %r = stablehlo.abs %a : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @cross_replica_sum(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.cross-replica-sum"(%a) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @custom_call(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.custom_call @Sharding(%a) {mhlo.sharding = "{replicated}"} : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @dot(%a: tensor<4x6xf32>, %m: tensor<4x4xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.dot %m, %a : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @dot_1(%a: tensor<4x6xf32>, %v: tensor<6xf32>) -> tensor<4xf32> {
  %r = stablehlo.dot %a, %v, precision = [HIGH, DEFAULT] : (tensor<4x6xf32>, tensor<6xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

func.func private @dot_general(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x4xf32> {
  %r = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func private @dot_general_1(%i: tensor<4x6xi32>, %j: tensor<4x6xi32>) -> tensor<4xi32> {
  %r = stablehlo.dot_general %i, %j, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x6xi32>, tensor<4x6xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}

func.func private @dot_general_2(%h: tensor<4x6xbf16>) -> tensor<4x4xf32> {
  %r = stablehlo.dot_general %h, %h, contracting_dims = [1] x [1] : (tensor<4x6xbf16>, tensor<4x6xbf16>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func private @dynamic_broadcast_in_dim(%v: tensor<6xf32>) -> tensor<4x6xf32> {
  %z = stablehlo.constant dense<[4, 6]> : tensor<2xi32>
  %r = stablehlo.dynamic_broadcast_in_dim %v, %z, dims = [1] : (tensor<6xf32>, tensor<2xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @dynamic_iota() -> tensor<4x6xf32> {
  %z = stablehlo.constant dense<[4, 6]> : tensor<2xi32>
  %r = stablehlo.dynamic_iota %z, dim = 1 : (tensor<2xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @dynamic_pad(%a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<7x5xf32> {
  %y = stablehlo.constant dense<[1, -2]> : tensor<2xi32>
  %z = stablehlo.constant dense<[2, 1]> : tensor<2xi32>
  %g = stablehlo.constant dense<0> : tensor<2xi32>
  %r = stablehlo.dynamic_pad %a, %s, %y, %z, %g : (tensor<4x6xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<7x5xf32>
  return %r : tensor<7x5xf32>
}

func.func private @dynamic_reshape(%a: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %z = stablehlo.constant dense<[6, 4]> : tensor<2xi32>
  %r = stablehlo.dynamic_reshape %a, %z : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

func.func private @dynamic_slice(%a: tensor<4x6xf32>, %k: tensor<i32>) -> tensor<2x3xf32> {
  %r = stablehlo.dynamic_slice %a, %k, %k, sizes = [2, 3] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

func.func private @dynamic_update_slice(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %k: tensor<i32>) -> tensor<4x6xf32> {
  %z = stablehlo.slice %b [0:2, 0:3] : (tensor<4x6xf32>) -> tensor<2x3xf32>
  %r = stablehlo.dynamic_update_slice %a, %z, %k, %k : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @einsum(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x4xf32> {
  %r = stablehlo.einsum %a, %b, config = "ij,kj->ik" : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}

func.func private @einsum_1(%a: tensor<4x6xf32>, %m: tensor<4x4xf32>) -> tensor<6xf32> {
  %r = stablehlo.einsum %a, %m, config = "ij,ik->j" : (tensor<4x6xf32>, tensor<4x4xf32>) -> tensor<6xf32>
  return %r : tensor<6xf32>
}

func.func private @einsum_2(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %r = stablehlo.einsum %a, %b, config = "ij,ij->ji" : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

func.func private @fft(%a: tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>> {
  %r = stablehlo.fft %a, type = RFFT, length = [6] : (tensor<4x6xf32>) -> tensor<4x4xcomplex<f32>>
  return %r : tensor<4x4xcomplex<f32>>
}

func.func private @fft_1(%c: tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>> {
  %r = stablehlo.fft %c, type = IFFT, length = [4, 6] : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xcomplex<f32>>
  return %r : tensor<4x6xcomplex<f32>>
}

func.func private @gather(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> tensor<4x6x4xf32> {
  %z = stablehlo.broadcast_in_dim %i, dims = [0, 1] : (tensor<4x6xi32>) -> tensor<4x6x1xi32>
  %r = "stablehlo.gather"(%a, %z) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 4, 1>, indices_are_sorted = false}> : (tensor<4x6xf32>, tensor<4x6x1xi32>) -> tensor<4x6x4xf32>
  return %r : tensor<4x6x4xf32>
}

func.func private @gather_1(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> tensor<4x6xf32> {
  %z = stablehlo.reshape %i : (tensor<4x6xi32>) -> tensor<4x6x1xi32>
  %r = "stablehlo.gather"(%a, %z) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<4x6xf32>, tensor<4x6x1xi32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @get_dimension_size(%a: tensor<4x6xf32>) -> tensor<i32> {
  %r = stablehlo.get_dimension_size %a, dim = 1 : (tensor<4x6xf32>) -> tensor<i32>
  return %r : tensor<i32>
}

func.func private @get_tuple_element(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> tensor<4x6xf32> {
  %z = stablehlo.tuple %a, %i : tuple<tensor<4x6xf32>, tensor<4x6xi32>>
  %r = stablehlo.get_tuple_element %z[0] : (tuple<tensor<4x6xf32>, tensor<4x6xi32>>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @if(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %t: tensor<i1>) -> tensor<4x6xf32> {
  %r = "stablehlo.if"(%t) ({
   
    stablehlo.return %a : tensor<4x6xf32>
  }, {
    %z = stablehlo.add %a, %b : tensor<4x6xf32>
    stablehlo.return %z : tensor<4x6xf32>
  }) : (tensor<i1>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @imag(%c: tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32> {
  %r = stablehlo.imag %c : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @iota() -> tensor<3x4xbf16> {
  %r = stablehlo.iota dim = 1 : tensor<3x4xbf16>
  return %r : tensor<3x4xbf16>
}

func.func private @is_finite(%a: tensor<4x6xf32>) -> tensor<4x6xi1> {
  %r = stablehlo.is_finite %a : (tensor<4x6xf32>) -> tensor<4x6xi1>
  return %r : tensor<4x6xi1>
}

func.func private @map(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %z = stablehlo.add %l, %o : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @pad(%a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<7x12xf32> {
  %r = stablehlo.pad %a, %s, low = [1, -1], high = [2, 2], interior = [0, 1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<7x12xf32>
  return %r : tensor<7x12xf32>
}

func.func private @partition_id() -> tensor<ui32> {
  %r = stablehlo.partition_id : tensor<ui32>
  return %r : tensor<ui32>
}

func.func private @real(%c: tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32> {
  %r = stablehlo.real %c : (tensor<4x6xcomplex<f32>>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @real_dynamic_slice(%a: tensor<4x6xf32>) -> tensor<2x2xf32> {
  %y = stablehlo.constant dense<[1, 0]> : tensor<2xi32>
  %z = stablehlo.constant dense<[3, 6]> : tensor<2xi32>
  %g = stablehlo.constant dense<[1, 3]> : tensor<2xi32>
  %r = stablehlo.real_dynamic_slice %a, %y, %z, %g : (tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}

func.func private @reduce(%a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  %r = stablehlo.reduce(%a init: %s) applies stablehlo.maximum across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

func.func private @reduce_1(%a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<6xf32> {
  %r = "stablehlo.reduce"(%a, %s) <{dimensions = array<i64: 0>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %z = stablehlo.add %l, %o : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<6xf32>
  return %r : tensor<6xf32>
}

func.func private @reduce_2(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>, %s: tensor<f32>, %k: tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %r:2 = stablehlo.reduce(%a init: %s), (%i init: %k) across dimensions = [1] : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
  reducer(%l: tensor<f32>, %o: tensor<f32>) (%e: tensor<i32>, %f: tensor<i32>) {
  %y = stablehlo.minimum %l, %o : tensor<f32>
  %z = stablehlo.xor %e, %f : tensor<i32>
  stablehlo.return %y, %z : tensor<f32>, tensor<i32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xi32>
}

func.func private @reduce_precision(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.reduce_precision %a, format = e5m4 : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @reduce_scatter(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.reduce_scatter"(%a) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %z = stablehlo.add %l, %o : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @reduce_window(%a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<4x2xf32> {
  %r = "stablehlo.reduce_window"(%a, %s) <{padding = dense<[[1, 0], [0, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 1, 3>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %z = stablehlo.maximum %l, %o : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

func.func private @reduce_window_1(%a: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<7x4xf32> {
  %r = "stablehlo.reduce_window"(%a, %s) <{base_dilations = array<i64: 2, 1>, window_dilations = array<i64: 1, 2>, window_dimensions = array<i64: 1, 2>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %z = stablehlo.add %l, %o : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<7x4xf32>
  return %r : tensor<7x4xf32>
}

func.func private @replica_id() -> tensor<ui32> {
  %r = stablehlo.replica_id : tensor<ui32>
  return %r : tensor<ui32>
}

func.func private @reshape(%a: tensor<4x6xf32>) -> tensor<3x8xf32> {
  %r = stablehlo.reshape %a : (tensor<4x6xf32>) -> tensor<3x8xf32>
  return %r : tensor<3x8xf32>
}

func.func private @reverse(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.reverse %a, dims = [0, 1] : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @rng_bit_generator(%state: tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>) {
  %r:2 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
  return %r#0, %r#1 : tensor<2xui64>, tensor<5xui32>
}

func.func private @rng_bit_generator_1(%state: tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui64>) {
  %r:2 = "stablehlo.rng_bit_generator"(%state) <{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui64>)
  return %r#0, %r#1 : tensor<2xui64>, tensor<3xui64>
}

func.func private @scatter(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> tensor<4x6xf32> {
  %z = stablehlo.slice %i [0:4, 0:1] : (tensor<4x6xi32>) -> tensor<4x1xi32>
  %r = "stablehlo.scatter"(%a, %z, %b) <{indices_are_sorted = false, unique_indices = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %inner = stablehlo.add %l, %o : tensor<f32>
    stablehlo.return %inner : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<4x1xi32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @select(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %p: tensor<4x6xi1>) -> tensor<4x6xf32> {
  %r = stablehlo.select %p, %a, %b : tensor<4x6xi1>, tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @select_1(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %t: tensor<i1>) -> tensor<4x6xf32> {
  %r = stablehlo.select %t, %a, %b : tensor<i1>, tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @select_and_scatter(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>, %s: tensor<f32>) -> tensor<4x6xf32> {
  %z = stablehlo.slice %b [0:2, 0:2] : (tensor<4x6xf32>) -> tensor<2x2xf32>
  %r = "stablehlo.select_and_scatter"(%a, %z, %s) <{window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 3>}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %y = stablehlo.compare GE, %l, %o : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %y : tensor<i1>
  }, {
  ^bb0(%l: tensor<f32>, %o: tensor<f32>):
    %inner = stablehlo.add %l, %o : tensor<f32>
    stablehlo.return %inner : tensor<f32>
  }) : (tensor<4x6xf32>, tensor<2x2xf32>, tensor<f32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @slice(%a: tensor<4x6xf32>) -> tensor<2x3xf32> {
  %r = stablehlo.slice %a [1:3, 0:6:2] : (tensor<4x6xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

func.func private @slice_1(%a: tensor<4x6xf32>) -> tensor<2x3xf32> {
  %r = "stablehlo.slice"(%a) <{start_indices = array<i64: 1, 1>, limit_indices = array<i64: 3, 6>, strides = array<i64: 1, 2>}> : (tensor<4x6xf32>) -> tensor<2x3xf32>
  return %r : tensor<2x3xf32>
}

func.func private @sort(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>) {
  %r:2 = "stablehlo.sort"(%a, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%l: tensor<f32>, %o: tensor<f32>, %e: tensor<i32>, %f: tensor<i32>):
    %z = stablehlo.compare GT, %l, %o, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
  return %r#0, %r#1 : tensor<4x6xf32>, tensor<4x6xi32>
}

func.func private @torch_index_select(%a: tensor<4x6xf32>) -> tensor<4x2xf32> {
  %z = stablehlo.constant dense<[5, 1]> : tensor<2xi32>
  %r = "stablehlo.torch_index_select"(%a, %z) <{batch_dims = 0 : i64, dim = 1 : i64}> : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<4x2xf32>
  return %r : tensor<4x2xf32>
}

func.func private @torch_index_select_1(%a: tensor<4x6xf32>) -> tensor<4x3xf32> {
  %z = stablehlo.constant dense<[[0, 1, 2], [3, 4, 5], [0, 0, 1], [5, 2, 2]]> : tensor<4x3xi32>
  %r = "stablehlo.torch_index_select"(%a, %z) <{batch_dims = 1 : i64, dim = 1 : i64}> : (tensor<4x6xf32>, tensor<4x3xi32>) -> tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

func.func private @transpose(%a: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %r = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

func.func private @triangular_solve(%a: tensor<4x6xf32>, %m: tensor<4x4xf32>) -> tensor<4x6xf32> {
  %r = "stablehlo.triangular_solve"(%m, %a) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<4x4xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @tuple(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> tensor<4x6xi32> {
  %z = stablehlo.tuple %a, %i : tuple<tensor<4x6xf32>, tensor<4x6xi32>>
  %r = stablehlo.get_tuple_element %z[1] : (tuple<tensor<4x6xf32>, tensor<4x6xi32>>) -> tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}

func.func private @while(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> (tensor<i32>, tensor<4x6xf32>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %y = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%e = %z, %f = %a) : tensor<i32>, tensor<4x6xf32>
  cond {
  %g = stablehlo.compare LT, %e, %y, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %g : tensor<i1>
  } do {
  %g = stablehlo.add %e, %one : tensor<i32>
  %o = stablehlo.add %f, %b : tensor<4x6xf32>
  stablehlo.return %g, %o : tensor<i32>, tensor<4x6xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<4x6xf32>
}

func.func private @sum(%l: tensor<4x6xf32>, %o: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %r = stablehlo.add %l, %o : tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @called(%a: tensor<4x6xf32>, %b: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = func.call @sum(%a, %b) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %r = call @sum(%z, %b) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @dynamic_gather(%a: tensor<4x6xf32>, %i: tensor<4x6xi32>) -> tensor<4x6x4xf32> {
  %z = stablehlo.reshape %i : (tensor<4x6xi32>) -> tensor<4x6x1xi32>
  %y = stablehlo.constant dense<[4, 1]> : tensor<2xi32>
  %r = "stablehlo.dynamic_gather"(%a, %z, %y) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 2>, indices_are_sorted = false}> : (tensor<4x6xf32>, tensor<4x6x1xi32>, tensor<2xi32>) -> tensor<4x6x4xf32>
  return %r : tensor<4x6x4xf32>
}

func.func private @set_dimension_size(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = stablehlo.constant dense<6> : tensor<i32>
  %y = stablehlo.set_dimension_size %a, %z, dim = 1 : (tensor<4x6xf32>, tensor<i32>) -> tensor<4x?xf32, #stablehlo.bounds<?, 6>>
  %x = stablehlo.constant dense<0.0> : tensor<f32>
  %w = stablehlo.reduce(%y init: %x) applies stablehlo.add across dimensions = [1] : (tensor<4x?xf32, #stablehlo.bounds<?, 6>>, tensor<f32>) -> tensor<4xf32>
  %r = stablehlo.broadcast_in_dim %w, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}

func.func private @async(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = "stablehlo.async_start"(%a) ({
  ^bb0(%l: tensor<4x6xf32>):
    %y = "stablehlo.collective_permute"(%l) <{source_target_pairs = dense<[[0, 0]]> : tensor<1x2xi64>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
    stablehlo.return %y : tensor<4x6xf32>
  }) : (tensor<4x6xf32>) -> !stablehlo.future<tensor<4x6xf32>>
  %r = "stablehlo.async_done"(%z) : (!stablehlo.future<tensor<4x6xf32>>) -> tensor<4x6xf32>
  return %r : tensor<4x6xf32>
}
