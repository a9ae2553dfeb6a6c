// reduce, 16 work items
// form: rows of 512, reason: 'q' reduces 512 elements to one
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<16x512xbf16>, %in_1: tensor<16xf32>, %out: tensor<16xf32>, %lo: index, %hi: index) -> tensor<16xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 0.000000e+00 : f32
	    %2 = scf.for %3 = %lo to %hi step %0 iter_args(%4 = %out) -> (tensor<16xf32>) {
	      %5 = xla_gpu.loop ()[%6] -> () in "()[s0] -> (), domain: s0 in [0, 511]" iter_args(%7 = %1) -> (f32) {
	        %8 = tensor.extract %in[%3, %6] : tensor<16x512xbf16>
	        %9 = arith.extf %8 : bf16 to f32
	        %10 = arith.addf %7, %9 fastmath<reassoc> : f32
	        xla_gpu.yield %10 : f32
	      }
	      %11 = tensor.extract %in_1[%3] : tensor<16xf32>
	      %12 = arith.mulf %5, %11 : f32
	      %13 = tensor.insert %12 into %4[%3] : tensor<16xf32>
	      scf.yield %13 : tensor<16xf32>
	    }
	    func.return %2 : tensor<16xf32>
	  }
	}
)
