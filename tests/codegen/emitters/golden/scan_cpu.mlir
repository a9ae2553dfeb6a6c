// scan, 2 work items
// form: 4 scans of 100 at a time, reason: 'r' is a scan along dimension 1
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<6x100xf32>, %out: tensor<6x100xf32>, %lo: index, %hi: index) -> tensor<6x100xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 0.000000e+00 : f32
	    %2 = arith.constant 2 : index
	    %3 = scf.for %4 = %lo to %hi step %0 iter_args(%5 = %out) -> (tensor<6x100xf32>) {
	      %6 = xla_gpu.apply_indexing "(d0) -> (d0 * 4), domain: d0 in [0, 1]"(%4)
	      %7 = arith.minsi %6, %2 : index
	      %8, %9, %10, %11, %12 = xla_gpu.loop ()[%13] -> () in "()[s0] -> (), domain: s0 in [0, 99]" iter_args(%14 = %1, %15 = %1, %16 = %1, %17 = %1, %18 = %5) -> (f32, f32, f32, f32, tensor<6x100xf32>) {
	        %19 = tensor.extract %in[%7, %13] : tensor<6x100xf32>
	        %20 = xla_gpu.apply_indexing "(d0) -> (d0 + 1), domain: d0 in [0, 2]"(%7)
	        %21 = tensor.extract %in[%20, %13] : tensor<6x100xf32>
	        %22 = xla_gpu.apply_indexing "(d0) -> (d0 + 2), domain: d0 in [0, 2]"(%7)
	        %23 = tensor.extract %in[%22, %13] : tensor<6x100xf32>
	        %24 = xla_gpu.apply_indexing "(d0) -> (d0 + 3), domain: d0 in [0, 2]"(%7)
	        %25 = tensor.extract %in[%24, %13] : tensor<6x100xf32>
	        %26 = arith.addf %14, %19 : f32
	        %27 = arith.addf %15, %21 : f32
	        %28 = arith.addf %16, %23 : f32
	        %29 = arith.addf %17, %25 : f32
	        %30 = tensor.insert %26 into %18[%7, %13] : tensor<6x100xf32>
	        %31 = tensor.insert %27 into %30[%20, %13] : tensor<6x100xf32>
	        %32 = tensor.insert %28 into %31[%22, %13] : tensor<6x100xf32>
	        %33 = tensor.insert %29 into %32[%24, %13] : tensor<6x100xf32>
	        xla_gpu.yield %26, %27, %28, %29, %33 : f32, f32, f32, f32, tensor<6x100xf32>
	      }
	      scf.yield %12 : tensor<6x100xf32>
	    }
	    func.return %3 : tensor<6x100xf32>
	  }
	}
)
