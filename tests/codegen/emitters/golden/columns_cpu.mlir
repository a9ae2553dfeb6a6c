// reduce, 1 work items
// form: columns of 96, up to 40 at a time, reason: 'r' reduces 96 elements to one
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<96x40xf32>, %out: tensor<40xf32>, %lo: index, %hi: index) -> tensor<40xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 0.000000e+00 : f32
	    %2 = scf.for %3 = %lo to %hi step %0 iter_args(%4 = %out) -> (tensor<40xf32>) {
	      %5 = tensor.empty() : tensor<40xf32>
	      %6 = xla_gpu.loop ()[%7] -> () in "()[s0] -> (), domain: s0 in [0, 31]" iter_args(%8 = %5) -> (tensor<40xf32>) {
	        %9 = tensor.insert %1 into %8[%7] : tensor<40xf32>
	        xla_gpu.yield %9 : tensor<40xf32>
	      }
	      %10 = xla_gpu.loop ()[%11] -> () in "()[s0] -> (), domain: s0 in [0, 7]" iter_args(%12 = %6) -> (tensor<40xf32>) {
	        %13 = xla_gpu.apply_indexing "(d0) -> (d0 + 32), domain: d0 in [0, 7]"(%11)
	        %14 = tensor.insert %1 into %12[%13] : tensor<40xf32>
	        xla_gpu.yield %14 : tensor<40xf32>
	      }
	      %15 = xla_gpu.loop ()[%16] -> () in "()[s0] -> (), domain: s0 in [0, 23]" iter_args(%17 = %10) -> (tensor<40xf32>) {
	        %18 = xla_gpu.loop ()[%19] -> () in "()[s0] -> (), domain: s0 in [0, 31]" iter_args(%20 = %17) -> (tensor<40xf32>) {
	          %21 = tensor.extract %20[%19] : tensor<40xf32>
	          %22 = xla_gpu.apply_indexing "(d0) -> (d0 * 4), domain: d0 in [0, 23]"(%16)
	          %23 = tensor.extract %in[%22, %19] : tensor<96x40xf32>
	          %24 = arith.mulf %23, %23 : f32
	          %25 = arith.addf %21, %24 fastmath<reassoc> : f32
	          %26 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 1), domain: d0 in [0, 23]"(%16)
	          %27 = tensor.extract %in[%26, %19] : tensor<96x40xf32>
	          %28 = arith.mulf %27, %27 : f32
	          %29 = arith.addf %25, %28 fastmath<reassoc> : f32
	          %30 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 2), domain: d0 in [0, 23]"(%16)
	          %31 = tensor.extract %in[%30, %19] : tensor<96x40xf32>
	          %32 = arith.mulf %31, %31 : f32
	          %33 = arith.addf %29, %32 fastmath<reassoc> : f32
	          %34 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 3), domain: d0 in [0, 23]"(%16)
	          %35 = tensor.extract %in[%34, %19] : tensor<96x40xf32>
	          %36 = arith.mulf %35, %35 : f32
	          %37 = arith.addf %33, %36 fastmath<reassoc> : f32
	          %38 = tensor.insert %37 into %20[%19] : tensor<40xf32>
	          xla_gpu.yield %38 : tensor<40xf32>
	        }
	        %39 = xla_gpu.loop ()[%40] -> () in "()[s0] -> (), domain: s0 in [0, 7]" iter_args(%41 = %18) -> (tensor<40xf32>) {
	          %42 = xla_gpu.apply_indexing "(d0) -> (d0 + 32), domain: d0 in [0, 7]"(%40)
	          %43 = tensor.extract %41[%42] : tensor<40xf32>
	          %44 = xla_gpu.apply_indexing "(d0) -> (d0 * 4), domain: d0 in [0, 23]"(%16)
	          %45 = tensor.extract %in[%44, %42] : tensor<96x40xf32>
	          %46 = arith.mulf %45, %45 : f32
	          %47 = arith.addf %43, %46 fastmath<reassoc> : f32
	          %48 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 1), domain: d0 in [0, 23]"(%16)
	          %49 = tensor.extract %in[%48, %42] : tensor<96x40xf32>
	          %50 = arith.mulf %49, %49 : f32
	          %51 = arith.addf %47, %50 fastmath<reassoc> : f32
	          %52 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 2), domain: d0 in [0, 23]"(%16)
	          %53 = tensor.extract %in[%52, %42] : tensor<96x40xf32>
	          %54 = arith.mulf %53, %53 : f32
	          %55 = arith.addf %51, %54 fastmath<reassoc> : f32
	          %56 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 3), domain: d0 in [0, 23]"(%16)
	          %57 = tensor.extract %in[%56, %42] : tensor<96x40xf32>
	          %58 = arith.mulf %57, %57 : f32
	          %59 = arith.addf %55, %58 fastmath<reassoc> : f32
	          %60 = tensor.insert %59 into %41[%42] : tensor<40xf32>
	          xla_gpu.yield %60 : tensor<40xf32>
	        }
	        xla_gpu.yield %39 : tensor<40xf32>
	      }
	      %61 = xla_gpu.loop ()[%62] -> () in "()[s0] -> (), domain: s0 in [0, 31]" iter_args(%63 = %4) -> (tensor<40xf32>) {
	        %64 = tensor.extract %15[%62] : tensor<40xf32>
	        %65 = tensor.insert %64 into %63[%62] : tensor<40xf32>
	        xla_gpu.yield %65 : tensor<40xf32>
	      }
	      %66 = xla_gpu.loop ()[%67] -> () in "()[s0] -> (), domain: s0 in [0, 7]" iter_args(%68 = %61) -> (tensor<40xf32>) {
	        %69 = xla_gpu.apply_indexing "(d0) -> (d0 + 32), domain: d0 in [0, 7]"(%67)
	        %70 = tensor.extract %15[%69] : tensor<40xf32>
	        %71 = tensor.insert %70 into %68[%69] : tensor<40xf32>
	        xla_gpu.yield %71 : tensor<40xf32>
	      }
	      scf.yield %66 : tensor<40xf32>
	    }
	    func.return %2 : tensor<40xf32>
	  }
	}
)
