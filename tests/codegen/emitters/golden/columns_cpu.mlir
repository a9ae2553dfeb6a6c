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
	      %10 = xla_gpu.loop ()[%11] -> () in "()[s0] -> (), domain: s0 in [0, 23]" iter_args(%12 = %6) -> (tensor<40xf32>) {
	        %13 = xla_gpu.loop ()[%14] -> () in "()[s0] -> (), domain: s0 in [0, 39]" iter_args(%15 = %12) -> (tensor<40xf32>) {
	          %16 = tensor.extract %15[%14] : tensor<40xf32>
	          %17 = xla_gpu.apply_indexing "(d0) -> (d0 * 4), domain: d0 in [0, 23]"(%11)
	          %18 = tensor.extract %in[%17, %14] : tensor<96x40xf32>
	          %19 = arith.mulf %18, %18 : f32
	          %20 = arith.addf %16, %19 fastmath<reassoc> : f32
	          %21 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 1), domain: d0 in [0, 23]"(%11)
	          %22 = tensor.extract %in[%21, %14] : tensor<96x40xf32>
	          %23 = arith.mulf %22, %22 : f32
	          %24 = arith.addf %20, %23 fastmath<reassoc> : f32
	          %25 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 2), domain: d0 in [0, 23]"(%11)
	          %26 = tensor.extract %in[%25, %14] : tensor<96x40xf32>
	          %27 = arith.mulf %26, %26 : f32
	          %28 = arith.addf %24, %27 fastmath<reassoc> : f32
	          %29 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 3), domain: d0 in [0, 23]"(%11)
	          %30 = tensor.extract %in[%29, %14] : tensor<96x40xf32>
	          %31 = arith.mulf %30, %30 : f32
	          %32 = arith.addf %28, %31 fastmath<reassoc> : f32
	          %33 = tensor.insert %32 into %15[%14] : tensor<40xf32>
	          xla_gpu.yield %33 : tensor<40xf32>
	        }
	        xla_gpu.yield %13 : tensor<40xf32>
	      }
	      %34 = xla_gpu.loop ()[%35] -> () in "()[s0] -> (), domain: s0 in [0, 39]" iter_args(%36 = %4) -> (tensor<40xf32>) {
	        %37 = tensor.extract %10[%35] : tensor<40xf32>
	        %38 = tensor.insert %37 into %36[%35] : tensor<40xf32>
	        xla_gpu.yield %38 : tensor<40xf32>
	      }
	      scf.yield %34 : tensor<40xf32>
	    }
	    func.return %2 : tensor<40xf32>
	  }
	}
)
