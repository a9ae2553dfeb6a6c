// reduce, 1 work items
// form: columns of 96, up to 40 at a time, reason: 'r' reduces 96 elements to one
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<96x40xf32>, %out: tensor<40xf32>, %lo: index, %hi: index) -> tensor<40xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 0.000000e+00 : f32
	    %2 = scf.for %3 = %lo to %hi step %0 iter_args(%4 = %out) -> (tensor<40xf32>) {
	      %5 = tensor.empty() : tensor<40xf32>
	      %6 = xla_gpu.loop ()[%7] -> () in "()[s0] -> (), domain: s0 in [0, 39]" iter_args(%8 = %5) -> (tensor<40xf32>) {
	        %9 = tensor.insert %1 into %8[%7] : tensor<40xf32>
	        xla_gpu.yield %9 : tensor<40xf32>
	      }
	      %10 = xla_gpu.loop ()[%11, %12] -> () in "()[s0, s1] -> (), domain: s0 in [0, 95], s1 in [0, 39]" iter_args(%13 = %6) -> (tensor<40xf32>) {
	        %14 = tensor.extract %13[%12] : tensor<40xf32>
	        %15 = tensor.extract %in[%11, %12] : tensor<96x40xf32>
	        %16 = arith.mulf %15, %15 : f32
	        %17 = arith.addf %14, %16 fastmath<reassoc> : f32
	        %18 = tensor.insert %17 into %13[%12] : tensor<40xf32>
	        xla_gpu.yield %18 : tensor<40xf32>
	      }
	      %19 = xla_gpu.loop ()[%20] -> () in "()[s0] -> (), domain: s0 in [0, 39]" iter_args(%21 = %4) -> (tensor<40xf32>) {
	        %22 = tensor.extract %10[%20] : tensor<40xf32>
	        %23 = tensor.insert %22 into %21[%20] : tensor<40xf32>
	        xla_gpu.yield %23 : tensor<40xf32>
	      }
	      scf.yield %19 : tensor<40xf32>
	    }
	    func.return %2 : tensor<40xf32>
	  }
	}
)
