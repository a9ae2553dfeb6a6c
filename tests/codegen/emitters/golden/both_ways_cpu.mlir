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
	      %28 = xla_gpu.loop ()[%29] -> () in "()[s0] -> (), domain: s0 in [0, 23]" iter_args(%30 = %20) -> (tensor<128xf32>) {
	        %31 = scf.for %32 = %6 to %18 step %1 iter_args(%33 = %30) -> (tensor<128xf32>) {
	          %34 = xla_gpu.loop ()[%35] -> () in "()[s0] -> (), domain: s0 in [0, 63]" iter_args(%36 = %33) -> (tensor<128xf32>) {
	            %37 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 1], d1 in [0, 63]"(%32, %35)
	            %38 = tensor.extract %36[%37] : tensor<128xf32>
	            %39, %40 = xla_gpu.apply_indexing "(d0, d1, d2, d3) -> (d1 * 4, d0 + d2 * 64 + d3), domain: d0 in [0, 127], d1 in [0, 23], d2 in [0, 1], d3 in [0, 63]"(%16, %29, %32, %35)
	            %41 = tensor.extract %in[%39, %40] : tensor<96x128xf32>
	            %42 = arith.addf %38, %41 fastmath<reassoc> : f32
	            %43 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 1), domain: d0 in [0, 23]"(%29)
	            %44 = tensor.extract %in[%43, %40] : tensor<96x128xf32>
	            %45 = arith.addf %42, %44 fastmath<reassoc> : f32
	            %46 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 2), domain: d0 in [0, 23]"(%29)
	            %47 = tensor.extract %in[%46, %40] : tensor<96x128xf32>
	            %48 = arith.addf %45, %47 fastmath<reassoc> : f32
	            %49 = xla_gpu.apply_indexing "(d0) -> (d0 * 4 + 3), domain: d0 in [0, 23]"(%29)
	            %50 = tensor.extract %in[%49, %40] : tensor<96x128xf32>
	            %51 = arith.addf %48, %50 fastmath<reassoc> : f32
	            %52 = tensor.insert %51 into %36[%37] : tensor<128xf32>
	            xla_gpu.yield %52 : tensor<128xf32>
	          }
	          scf.yield %34 : tensor<128xf32>
	        }
	        xla_gpu.yield %31 : tensor<128xf32>
	      }
	      %53 = scf.for %54 = %6 to %18 step %1 iter_args(%55 = %15) -> (tensor<128xf32>) {
	        %56 = xla_gpu.loop ()[%57] -> () in "()[s0] -> (), domain: s0 in [0, 63]" iter_args(%58 = %55) -> (tensor<128xf32>) {
	          %59 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 64 + d1), domain: d0 in [0, 1], d1 in [0, 63]"(%54, %57)
	          %60 = tensor.extract %28[%59] : tensor<128xf32>
	          %61 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d0 + d1 * 64 + d2), domain: d0 in [0, 127], d1 in [0, 1], d2 in [0, 63]"(%16, %54, %57)
	          %62 = tensor.insert %60 into %58[%61] : tensor<128xf32>
	          xla_gpu.yield %62 : tensor<128xf32>
	        }
	        scf.yield %56 : tensor<128xf32>
	      }
	      scf.yield %53 : tensor<128xf32>
	    }
	    %63 = arith.subi %lo, %5 : index
	    %64 = arith.maxsi %63, %6 : index
	    %65 = arith.minsi %64, %0 : index
	    %66 = arith.subi %hi, %5 : index
	    %67 = arith.maxsi %66, %6 : index
	    %68 = arith.minsi %67, %0 : index
	    %69 = scf.for %70 = %65 to %68 step %1 iter_args(%71 = %out_1) -> (tensor<96xf32>) {
	      %72 = xla_gpu.loop ()[%73] -> () in "()[s0] -> (), domain: s0 in [0, 127]" iter_args(%74 = %2) -> (f32) {
	        %75 = tensor.extract %in[%70, %73] : tensor<96x128xf32>
	        %76 = arith.addf %74, %75 fastmath<reassoc> : f32
	        xla_gpu.yield %76 : f32
	      }
	      %77 = tensor.insert %72 into %71[%70] : tensor<96xf32>
	      scf.yield %77 : tensor<96xf32>
	    }
	    func.return %13, %69 : tensor<128xf32>, tensor<96xf32>
	  }
	}
)
