ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<6x512x64xf32>, %in_1: tensor<64xf32>, %out: tensor<6x512x64xf32>, %lo: index, %hi: index) -> tensor<6x512x64xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = scf.for %2 = %lo to %hi step %0 iter_args(%3 = %out) -> (tensor<6x512x64xf32>) {
	      %4 = xla_gpu.loop ()[%5] -> () in "()[s0] -> (), domain: s0 in [0, 63]" iter_args(%6 = %3) -> (tensor<6x512x64xf32>) {
	        %7, %8 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 512, d0 mod 512), domain: d0 in [0, 3071]"(%2)
	        %9 = tensor.extract %in[%7, %8, %5] : tensor<6x512x64xf32>
	        %10 = tensor.extract %in_1[%5] : tensor<64xf32>
	        %11 = arith.addf %9, %10 : f32
	        %12 = arith.mulf %11, %11 : f32
	        %13 = tensor.insert %12 into %6[%7, %8, %5] : tensor<6x512x64xf32>
	        xla_gpu.yield %13 : tensor<6x512x64xf32>
	      }
	      scf.yield %4 : tensor<6x512x64xf32>
	    }
	    func.return %1 : tensor<6x512x64xf32>
	  }
	}
)
