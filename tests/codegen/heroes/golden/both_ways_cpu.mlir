// reduce, 98 work items
// form: columns of 96, up to 128 at a time and rows of 128, reason: 'a.1' reduces 96 elements to one
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<96x128xf32>, %out: tensor<128xf32>, %out_1: tensor<96xf32>, %lo: index, %hi: index) -> (tensor<128xf32>, tensor<96xf32>) attributes {xla_gpu.entry} {
	    %0 = arith.constant 96 : index
	    %1 = arith.constant 0.000000e+00 : f32
	    %2 = arith.constant 128 : index
	    %3 = arith.constant 64 : index
	    %4 = arith.constant 1 : index
	    %5 = arith.constant 2 : index
	    %6 = arith.constant 0 : index
	    %7 = arith.maxsi %lo, %6 : index
	    %8 = arith.minsi %7, %5 : index
	    %9 = arith.maxsi %hi, %6 : index
	    %10 = arith.minsi %9, %5 : index
	    %11 = arith.addi %10, %4 : index
	    %12 = arith.divui %8, %5 : index
	    %13 = arith.divui %11, %5 : index
	    %14 = scf.for %15 = %12 to %13 step %4 iter_args(%16 = %out) -> (tensor<128xf32>) {
	      %17 = arith.muli %15, %5 : index
	      %18 = arith.subi %8, %17 : index
	      %19 = arith.maxsi %18, %6 : index
	      %20 = arith.subi %10, %17 : index
	      %21 = arith.minsi %20, %5 : index
	      %22 = scf.for %23 = %19 to %21 step %3 iter_args(%24 = %16) -> (tensor<128xf32>) {
	        %25 = arith.muli %23, %3 : index
	        %26 = arith.muli %21, %3 : index
	        %27 = arith.minsi %26, %2 : index
	        %28 = arith.subi %27, %25 : index
	        %29 = arith.minsi %28, %2 : index
	        %30 = tensor.empty() : tensor<128xf32>
	        %31 = scf.for %32 = %6 to %29 step %4 iter_args(%33 = %30) -> (tensor<128xf32>) {
	          %34 = tensor.insert %1 into %33[%32] : tensor<128xf32>
	          scf.yield %34 : tensor<128xf32>
	        }
	        %35 = xla_gpu.loop ()[%36] -> () in "()[s0] -> (), domain: s0 in [0, 95]" iter_args(%37 = %31) -> (tensor<128xf32>) {
	          %38 = scf.for %39 = %6 to %29 step %4 iter_args(%40 = %37) -> (tensor<128xf32>) {
	            %41 = tensor.extract %40[%39] : tensor<128xf32>
	            %42 = xla_gpu.apply_indexing "(d0, d1) -> (d0 + d1), domain: d0 in [0, 127], d1 in [0, 127]"(%25, %39)
	            %43 = tensor.extract %in[%36, %42] : tensor<96x128xf32>
	            %44 = arith.addf %41, %43 fastmath<reassoc> : f32
	            %45 = tensor.insert %44 into %40[%39] : tensor<128xf32>
	            scf.yield %45 : tensor<128xf32>
	          }
	          xla_gpu.yield %38 : tensor<128xf32>
	        }
	        %46 = scf.for %47 = %6 to %29 step %4 iter_args(%48 = %24) -> (tensor<128xf32>) {
	          %49 = tensor.extract %35[%47] : tensor<128xf32>
	          %50 = xla_gpu.apply_indexing "(d0, d1) -> (d0 + d1), domain: d0 in [0, 127], d1 in [0, 127]"(%25, %47)
	          %51 = tensor.insert %49 into %48[%50] : tensor<128xf32>
	          scf.yield %51 : tensor<128xf32>
	        }
	        scf.yield %46 : tensor<128xf32>
	      }
	      scf.yield %22 : tensor<128xf32>
	    }
	    %52 = arith.subi %lo, %5 : index
	    %53 = arith.maxsi %52, %6 : index
	    %54 = arith.minsi %53, %0 : index
	    %55 = arith.subi %hi, %5 : index
	    %56 = arith.maxsi %55, %6 : index
	    %57 = arith.minsi %56, %0 : index
	    %58 = scf.for %59 = %54 to %57 step %4 iter_args(%60 = %out_1) -> (tensor<96xf32>) {
	      %61 = xla_gpu.loop ()[%62] -> () in "()[s0] -> (), domain: s0 in [0, 127]" iter_args(%63 = %1) -> (f32) {
	        %64 = tensor.extract %in[%59, %62] : tensor<96x128xf32>
	        %65 = arith.addf %63, %64 fastmath<reassoc> : f32
	        xla_gpu.yield %65 : f32
	      }
	      %66 = tensor.insert %61 into %60[%59] : tensor<96xf32>
	      scf.yield %66 : tensor<96xf32>
	    }
	    func.return %14, %58 : tensor<128xf32>, tensor<96xf32>
	  }
	}
)
