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
	        %31 = xla_gpu.loop (%29)[%32] -> () in "(d0)[s0] -> (), domain: d0 in [0, 128], s0 in [0, 127], -d0 + s0 in [-128, -1]" iter_args(%33 = %30) -> (tensor<128xf32>) {
	          %34 = tensor.insert %1 into %33[%32] : tensor<128xf32>
	          xla_gpu.yield %34 : tensor<128xf32>
	        }
	        %35 = xla_gpu.loop (%29)[%36, %37] -> () in "(d0)[s0, s1] -> (), domain: d0 in [0, 128], s0 in [0, 95], s1 in [0, 127], -d0 + s1 in [-128, -1]" iter_args(%38 = %31) -> (tensor<128xf32>) {
	          %39 = tensor.extract %38[%37] : tensor<128xf32>
	          %40 = xla_gpu.apply_indexing "(d0, d1) -> (d0 + d1), domain: d0 in [0, 127], d1 in [0, 127]"(%25, %37)
	          %41 = tensor.extract %in[%36, %40] : tensor<96x128xf32>
	          %42 = arith.addf %39, %41 fastmath<reassoc> : f32
	          %43 = tensor.insert %42 into %38[%37] : tensor<128xf32>
	          xla_gpu.yield %43 : tensor<128xf32>
	        }
	        %44 = xla_gpu.loop (%29)[%45] -> () in "(d0)[s0] -> (), domain: d0 in [0, 128], s0 in [0, 127], -d0 + s0 in [-128, -1]" iter_args(%46 = %24) -> (tensor<128xf32>) {
	          %47 = tensor.extract %35[%45] : tensor<128xf32>
	          %48 = xla_gpu.apply_indexing "(d0, d1) -> (d0 + d1), domain: d0 in [0, 127], d1 in [0, 127]"(%25, %45)
	          %49 = tensor.insert %47 into %46[%48] : tensor<128xf32>
	          xla_gpu.yield %49 : tensor<128xf32>
	        }
	        scf.yield %44 : tensor<128xf32>
	      }
	      scf.yield %22 : tensor<128xf32>
	    }
	    %50 = arith.subi %lo, %5 : index
	    %51 = arith.maxsi %50, %6 : index
	    %52 = arith.minsi %51, %0 : index
	    %53 = arith.subi %hi, %5 : index
	    %54 = arith.maxsi %53, %6 : index
	    %55 = arith.minsi %54, %0 : index
	    %56 = scf.for %57 = %52 to %55 step %4 iter_args(%58 = %out_1) -> (tensor<96xf32>) {
	      %59 = xla_gpu.loop ()[%60] -> () in "()[s0] -> (), domain: s0 in [0, 127]" iter_args(%61 = %1) -> (f32) {
	        %62 = tensor.extract %in[%57, %60] : tensor<96x128xf32>
	        %63 = arith.addf %61, %62 fastmath<reassoc> : f32
	        xla_gpu.yield %63 : f32
	      }
	      %64 = tensor.insert %59 into %58[%57] : tensor<96xf32>
	      scf.yield %64 : tensor<96xf32>
	    }
	    func.return %14, %56 : tensor<128xf32>, tensor<96xf32>
	  }
	}
)
