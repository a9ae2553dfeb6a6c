// scatter, 1 work items
// parts: 1, reason: 'r' is a scatter
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<9x4xf32>, %in_1: tensor<20x1xi32>, %in_2: tensor<20x4xf32>, %out: tensor<9x4xf32> {xla_gpu.alias = 0 : i64}, %lo: index, %hi: index) -> tensor<9x4xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 0 : index
	    %2 = scf.for %3 = %lo to %hi step %0 iter_args(%4 = %out) -> (tensor<9x4xf32>) {
	      %5 = xla_gpu.loop ()[%6] -> () in "()[s0] -> (), domain: s0 in [0, 19]" iter_args(%7 = %4) -> (tensor<9x4xf32>) {
	        %8 = tensor.extract %in_1[%6, %1] : tensor<20x1xi32>
	        %9 = arith.index_cast %8 : i32 to index
	        %10 = xla_gpu.loop (%9)[] -> () in "(d0) -> (), domain: d0 in [-2147483648, 2147483647], d0 in [0, 8]" iter_args(%11 = %7) -> (tensor<9x4xf32>) {
	          %12 = xla_gpu.loop ()[%13] -> () in "()[s0] -> (), domain: s0 in [0, 3]" iter_args(%14 = %11) -> (tensor<9x4xf32>) {
	            %15 = tensor.extract %in_2[%6, %13] : tensor<20x4xf32>
	            %16 = tensor.extract %14[%9, %13] : tensor<9x4xf32>
	            %17 = arith.addf %16, %15 : f32
	            %18 = tensor.insert %17 into %14[%9, %13] : tensor<9x4xf32>
	            xla_gpu.yield %18 : tensor<9x4xf32>
	          }
	          xla_gpu.yield %12 : tensor<9x4xf32>
	        }
	        xla_gpu.yield %10 : tensor<9x4xf32>
	      }
	      scf.yield %5 : tensor<9x4xf32>
	    }
	    func.return %2 : tensor<9x4xf32>
	  }
	}
)
