// reduce, 98 work items
// form: columns of 96, up to 128 at a time and rows of 128, reason: 'a.1' reduces 96 elements to one
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<96x128xf32>, %out: tensor<128xf32>, %out_1: tensor<96xf32>, %lo: index, %hi: index) -> (tensor<128xf32>, tensor<96xf32>) attributes {xla_gpu.entry} {
	    %0 = arith.constant 96 : index
	    %1 = arith.constant 1 : index
	    %2 = arith.constant 0.000000e+00 : f32
	    %3 = arith.constant 128 : index
	    %4 = arith.constant 64 : index
	    %5 = arith.constant 2 : index
	    %6 = arith.constant 0 : index
	    %7 = arith.maxsi %lo, %6 : index
	    %8 = arith.minsi %7, %5 : index
	    %9 = arith.maxsi %hi, %6 : index
	    %10 = arith.minsi %9, %5 : index
	    %11 = arith.muli %10, %4 : index
	    %12 = arith.minsi %11, %3 : index
	    %13 = scf.for %14 = %8 to %10 step %4 iter_args(%15 = %out) -> (tensor<128xf32>) {
	      %16 = arith.muli %14, %4 : index
	      %17 = arith.subi %10, %14 : index
	      %18 = arith.minsi %17, %5 : index
	      %19 = tensor.empty() : tensor<128xf32>
	      %20 = scf.for %21 = %6 to %18 step %1 iter_args(%22 = %19) -> (tensor<128xf32>) {
	        %23 = xla_gpu.loop ()[%24] -> () in "()[s0] -> (), domain: s0 in [0, 63]" iter_args(%25 = %22) -> (tensor<128xf32>) {
	          %26 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 1], d1 in [0, 63]"(%21, %24)
	          %27 = tensor.insert %2 into %25[%26] : tensor<128xf32>
	          xla_gpu.yield %27 : tensor<128xf32>
	        }
	        scf.yield %23 : tensor<128xf32>
	      }
	      %28 = xla_gpu.loop ()[%29] -> () in "()[s0] -> (), domain: s0 in [0, 95]" iter_args(%30 = %20) -> (tensor<128xf32>) {
	        %31 = scf.for %32 = %6 to %18 step %1 iter_args(%33 = %30) -> (tensor<128xf32>) {
	          %34 = xla_gpu.loop ()[%35] -> () in "()[s0] -> (), domain: s0 in [0, 63]" iter_args(%36 = %33) -> (tensor<128xf32>) {
	            %37 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 1], d1 in [0, 63]"(%32, %35)
	            %38 = tensor.extract %36[%37] : tensor<128xf32>
	            %39 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d0 + d1 * 64 + d2), domain: d0 in [0, 127], d1 in [0, 1], d2 in [0, 63]"(%16, %32, %35)
	            %40 = tensor.extract %in[%29, %39] : tensor<96x128xf32>
	            %41 = arith.addf %38, %40 fastmath<reassoc> : f32
	            %42 = tensor.insert %41 into %36[%37] : tensor<128xf32>
	            xla_gpu.yield %42 : tensor<128xf32>
	          }
	          scf.yield %34 : tensor<128xf32>
	        }
	        xla_gpu.yield %31 : tensor<128xf32>
	      }
	      %43 = scf.for %44 = %6 to %18 step %1 iter_args(%45 = %15) -> (tensor<128xf32>) {
	        %46 = xla_gpu.loop ()[%47] -> () in "()[s0] -> (), domain: s0 in [0, 63]" iter_args(%48 = %45) -> (tensor<128xf32>) {
	          %49 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 1], d1 in [0, 63]"(%44, %47)
	          %50 = tensor.extract %28[%49] : tensor<128xf32>
	          %51 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d0 + d1 * 64 + d2), domain: d0 in [0, 127], d1 in [0, 1], d2 in [0, 63]"(%16, %44, %47)
	          %52 = tensor.insert %50 into %48[%51] : tensor<128xf32>
	          xla_gpu.yield %52 : tensor<128xf32>
	        }
	        scf.yield %46 : tensor<128xf32>
	      }
	      scf.yield %43 : tensor<128xf32>
	    }
	    %53 = arith.subi %lo, %5 : index
	    %54 = arith.maxsi %53, %6 : index
	    %55 = arith.minsi %54, %0 : index
	    %56 = arith.subi %hi, %5 : index
	    %57 = arith.maxsi %56, %6 : index
	    %58 = arith.minsi %57, %0 : index
	    %59 = scf.for %60 = %55 to %58 step %1 iter_args(%61 = %out_1) -> (tensor<96xf32>) {
	      %62 = xla_gpu.loop ()[%63] -> () in "()[s0] -> (), domain: s0 in [0, 127]" iter_args(%64 = %2) -> (f32) {
	        %65 = tensor.extract %in[%60, %63] : tensor<96x128xf32>
	        %66 = arith.addf %64, %65 fastmath<reassoc> : f32
	        xla_gpu.yield %66 : f32
	      }
	      %67 = tensor.insert %62 into %61[%60] : tensor<96xf32>
	      scf.yield %67 : tensor<96xf32>
	    }
	    func.return %13, %59 : tensor<128xf32>, tensor<96xf32>
	  }
	}
)
