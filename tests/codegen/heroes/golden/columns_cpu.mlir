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
	      %10 = xla_gpu.loop ()[%11] -> () in "()[s0] -> (), domain: s0 in [0, 95]" iter_args(%12 = %6) -> (tensor<40xf32>) {
	        %13 = xla_gpu.loop ()[%14] -> () in "()[s0] -> (), domain: s0 in [0, 39]" iter_args(%15 = %12) -> (tensor<40xf32>) {
	          %16 = tensor.extract %15[%14] : tensor<40xf32>
	          %17 = tensor.extract %in[%11, %14] : tensor<96x40xf32>
	          %18 = arith.mulf %17, %17 : f32
	          %19 = arith.addf %16, %18 fastmath<reassoc> : f32
	          %20 = tensor.insert %19 into %15[%14] : tensor<40xf32>
	          xla_gpu.yield %20 : tensor<40xf32>
	        }
	        xla_gpu.yield %13 : tensor<40xf32>
	      }
	      %21 = xla_gpu.loop ()[%22] -> () in "()[s0] -> (), domain: s0 in [0, 39]" iter_args(%23 = %4) -> (tensor<40xf32>) {
	        %24 = tensor.extract %10[%22] : tensor<40xf32>
	        %25 = tensor.insert %24 into %23[%22] : tensor<40xf32>
	        xla_gpu.yield %25 : tensor<40xf32>
	      }
	      scf.yield %21 : tensor<40xf32>
	    }
	    func.return %2 : tensor<40xf32>
	  }
	}
)
