// concatenate, (5, 1, 1) x (128, 1, 1), 0 bytes shared
// vector: 1 + 1, pieces: 2, reason: 'c.1' joins 2 operands
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<8x24xf32>, %in_1: tensor<8x40xf32>, %in_2: tensor<8x64xf32>, %out: tensor<8x64xf32>) -> tensor<8x64xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 319 : index
	    %1 = arith.constant 2 : index
	    %2 = arith.constant 191 : index
	    %3 = arith.constant 1 : index
	    %4 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %5 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %6 = arith.cmpi sle, %5, %3 : index
	    %7 = scf.if %6 -> (tensor<8x64xf32>) {
	      %8 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 128 + d1), domain: d0 in [0, 1], d1 in [0, 127]"(%5, %4)
	      %9 = arith.cmpi sle, %8, %2 : index
	      %10 = scf.if %9 -> (tensor<8x64xf32>) {
	        %11, %12 = xla_gpu.apply_indexing "(d0, d1) -> ((d0 * 128 + d1) floordiv 24, (d0 * 128 + d1) mod 24), domain: d0 in [0, 1], d1 in [0, 127]"(%5, %4)
	        %13 = tensor.extract %in[%11, %12] : tensor<8x24xf32>
	        %14 = tensor.extract %in_2[%11, %12] : tensor<8x64xf32>
	        %15 = arith.mulf %13, %14 : f32
	        %16 = tensor.insert %15 into %out[%11, %12] : tensor<8x64xf32>
	        scf.yield %16 : tensor<8x64xf32>
	      } else {
	        scf.yield %out : tensor<8x64xf32>
	      }
	      scf.yield %10 : tensor<8x64xf32>
	    } else {
	      scf.yield %out : tensor<8x64xf32>
	    }
	    %17 = arith.cmpi sge, %5, %1 : index
	    %18 = scf.if %17 -> (tensor<8x64xf32>) {
	      %19 = xla_gpu.apply_indexing "(d0) -> (d0 - 2), domain: d0 in [0, 4]"(%5)
	      %20 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 128 + d1), domain: d0 in [0, 2], d1 in [0, 127]"(%19, %4)
	      %21 = arith.cmpi sle, %20, %0 : index
	      %22 = scf.if %21 -> (tensor<8x64xf32>) {
	        %23, %24 = xla_gpu.apply_indexing "(d0, d1) -> ((d0 * 128 + d1) floordiv 40, (d0 * 128 + d1) mod 40), domain: d0 in [0, 2], d1 in [0, 127]"(%19, %4)
	        %25 = tensor.extract %in_1[%23, %24] : tensor<8x40xf32>
	        %26 = xla_gpu.apply_indexing "(d0) -> (d0 + 24), domain: d0 in [0, 39]"(%24)
	        %27 = tensor.extract %in_2[%23, %26] : tensor<8x64xf32>
	        %28 = arith.mulf %25, %27 : f32
	        %29 = tensor.insert %28 into %7[%23, %26] : tensor<8x64xf32>
	        scf.yield %29 : tensor<8x64xf32>
	      } else {
	        scf.yield %7 : tensor<8x64xf32>
	      }
	      scf.yield %22 : tensor<8x64xf32>
	    } else {
	      scf.yield %7 : tensor<8x64xf32>
	    }
	    func.return %18 : tensor<8x64xf32>
	  }
	}
)
