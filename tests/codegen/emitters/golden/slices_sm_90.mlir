// slices, (2, 1, 1) x (128, 1, 1), 0 bytes shared
// vector: 1 + 1, reason: all 2 outputs are slices
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<30xf32>, %in_1: tensor<50xf32>, %out: tensor<30xf32>, %out_1: tensor<50xf32>) -> (tensor<30xf32>, tensor<50xf32>) attributes {xla_gpu.entry} {
	    %0 = arith.constant 49 : index
	    %1 = arith.constant 1 : index
	    %2 = arith.constant 29 : index
	    %3 = arith.constant 0 : index
	    %4 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %5 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %6 = arith.cmpi sle, %5, %3 : index
	    %7 = scf.if %6 -> (tensor<30xf32>) {
	      %8 = arith.cmpi sle, %4, %2 : index
	      %9 = scf.if %8 -> (tensor<30xf32>) {
	        %10 = tensor.extract %in[%4] : tensor<30xf32>
	        %11 = arith.negf %10 : f32
	        %12 = tensor.insert %11 into %out[%4] : tensor<30xf32>
	        scf.yield %12 : tensor<30xf32>
	      } else {
	        scf.yield %out : tensor<30xf32>
	      }
	      scf.yield %9 : tensor<30xf32>
	    } else {
	      scf.yield %out : tensor<30xf32>
	    }
	    %13 = arith.cmpi sge, %5, %1 : index
	    %14 = scf.if %13 -> (tensor<50xf32>) {
	      %15 = xla_gpu.apply_indexing "(d0) -> (d0 - 1), domain: d0 in [0, 1]"(%5)
	      %16 = arith.cmpi sle, %4, %0 : index
	      %17 = scf.if %16 -> (tensor<50xf32>) {
	        %18 = tensor.extract %in_1[%4] : tensor<50xf32>
	        %19 = math.absf %18 : f32
	        %20 = tensor.insert %19 into %out_1[%4] : tensor<50xf32>
	        scf.yield %20 : tensor<50xf32>
	      } else {
	        scf.yield %out_1 : tensor<50xf32>
	      }
	      scf.yield %17 : tensor<50xf32>
	    } else {
	      scf.yield %out_1 : tensor<50xf32>
	    }
	    func.return %7, %14 : tensor<30xf32>, tensor<50xf32>
	  }
	}
)
