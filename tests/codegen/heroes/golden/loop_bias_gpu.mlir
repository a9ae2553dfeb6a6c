ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<6x512x64xf32>, %in_1: tensor<64xf32>, %out: tensor<6x512x64xf32>) -> tensor<6x512x64xf32> attributes {xla_gpu.entry} {
	    %0 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %1 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %2 = xla_gpu.loop (%0, %1)[%3] -> (%4, %5, %6) in "(th_x, bl_x)[s0] -> (bl_x floordiv 64, th_x floordiv 16 + (bl_x mod 64) * 8, (th_x mod 16) * 4 + s0), domain: th_x in [0, 127], bl_x in [0, 383], s0 in [0, 3]" iter_args(%7 = %out) -> (tensor<6x512x64xf32>) {
	      %8 = tensor.extract %in[%4, %5, %6] : tensor<6x512x64xf32>
	      %9 = tensor.extract %in_1[%6] : tensor<64xf32>
	      %10 = arith.addf %8, %9 : f32
	      %11 = arith.mulf %10, %10 : f32
	      %12 = tensor.insert %11 into %7[%4, %5, %6] : tensor<6x512x64xf32>
	      xla_gpu.yield %12 : tensor<6x512x64xf32>
	    }
	    func.return %2 : tensor<6x512x64xf32>
	  }
	}
)
