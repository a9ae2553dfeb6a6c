// dus, 16 work items
// in place: {0: 0}, reason: every output updates an input in place
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<40x8xf32>, %in_1: tensor<2x8xf32>, %in_2: tensor<i32>, %out: tensor<320xf32> {xla_gpu.alias = 0 : i64}, %lo: index, %hi: index) -> tensor<320xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 38 : index
	    %2 = arith.constant 0 : index
	    %3 = scf.for %4 = %lo to %hi step %0 iter_args(%5 = %out) -> (tensor<320xf32>) {
	      %6, %7 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 15]"(%4)
	      %8 = tensor.extract %in_1[%6, %7] : tensor<2x8xf32>
	      %9 = tensor.extract %in_2[] : tensor<i32>
	      %10 = arith.index_cast %9 : i32 to index
	      %11 = arith.maxsi %10, %2 : index
	      %12 = arith.minsi %11, %1 : index
	      %13 = xla_gpu.apply_indexing "(d0, d1) -> (d0 + d1 * 8), domain: d0 in [0, 15], d1 in [0, 38]"(%4, %12)
	      %14 = tensor.insert %8 into %5[%13] : tensor<320xf32>
	      scf.yield %14 : tensor<320xf32>
	    }
	    func.return %3 : tensor<320xf32>
	  }
	}
)
