// dus, (1, 1, 1) x (16, 1, 1), 0 bytes shared
// vector: 1, in place: {0: 0}, reason: every output updates an input in place
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<40x8xf32>, %in_1: tensor<2x8xf32>, %in_2: tensor<i32>, %out: tensor<320xf32> {xla_gpu.alias = 0 : i64}) -> tensor<320xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 38 : index
	    %1 = arith.constant 0 : index
	    %2 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %3 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %4, %5 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 15]"(%2)
	    %6 = tensor.extract %in_1[%4, %5] : tensor<2x8xf32>
	    %7 = tensor.extract %in_2[] : tensor<i32>
	    %8 = arith.index_cast %7 : i32 to index
	    %9 = arith.maxsi %8, %1 : index
	    %10 = arith.minsi %9, %0 : index
	    %11 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d0 * 8 + d1 + d2 * 8), domain: d0 in [0, 1], d1 in [0, 7], d2 in [0, 38]"(%4, %5, %10)
	    %12 = tensor.insert %6 into %out[%11] : tensor<320xf32>
	    func.return %12 : tensor<320xf32>
	  }
	}
)
