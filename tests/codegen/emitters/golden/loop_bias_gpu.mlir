ModuleOp(
	builtin.module {
	  func.func private @k_r(%0: tensor<6x512x64xf32>, %1: tensor<64xf32>, %2: index, %3: index, %4: index) -> f32 {
	    %5 = tensor.extract %0[%2, %3, %4] : tensor<6x512x64xf32>
	    %6 = tensor.extract %1[%4] : tensor<64xf32>
	    %7 = arith.addf %5, %6 : f32
	    %8 = arith.mulf %7, %7 : f32
	    func.return %8 : f32
	  }
	  func.func @k(%in: tensor<6x512x64xf32>, %in_1: tensor<64xf32>, %out: tensor<6x512x64xf32>) -> tensor<6x512x64xf32> attributes {xla_gpu.entry} {
	    %0 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %1 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %2 = xla_gpu.loop (%0, %1)[%3] -> (%4, %5, %6) in "(th_x, bl_x)[s0] -> (bl_x floordiv 64, th_x floordiv 16 + (bl_x mod 64) * 8, (th_x mod 16) * 4 + s0), domain: th_x in [0, 127], bl_x in [0, 383], s0 in [0, 3]" iter_args(%7 = %out) -> (tensor<6x512x64xf32>) {
	      %8 = xla_gpu.pure_call @k_r(%in, %in_1, %4, %5, %6) : (tensor<6x512x64xf32>, tensor<64xf32>, index, index, index) -> f32
	      %9 = tensor.insert %8 into %7[%4, %5, %6] : tensor<6x512x64xf32>
	      xla_gpu.yield %9 : tensor<6x512x64xf32>
	    }
	    func.return %2 : tensor<6x512x64xf32>
	  }
	}
)
