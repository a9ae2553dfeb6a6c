// (6, 1, 1) x (256, 1, 1): 32x32
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<64x96xf32>, %in_1: tensor<96x64xf32>, %out: tensor<96x64xf32>) -> tensor<96x64xf32> attributes {xla_gpu.entry} {
	    %0 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %1 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %2 = xla_gpu.allocate_shared : tensor<1055xf32>
	    %3 = xla_gpu.loop ()[%4, %5] -> () in "()[s0, s1] -> (), domain: s0 in [0, 3], s1 in [0, 0]" iter_args(%6 = %2) -> (tensor<1055xf32>) {
	      %7, %8 = xla_gpu.apply_indexing "(d0, d1, d2) -> ((d0 mod 2) * 32 + d1 floordiv 32 + d2 * 8, (d0 floordiv 2) * 32 + d1 mod 32), domain: d0 in [0, 5], d1 in [0, 255], d2 in [0, 3]"(%1, %0, %4)
	      %9 = tensor.extract %in[%7, %8] : tensor<64x96xf32>
	      %10 = xla_gpu.apply_indexing "(d0, d1) -> ((d0 floordiv 32) * 33 + d0 mod 32 + d1 * 264), domain: d0 in [0, 255], d1 in [0, 3]"(%0, %4)
	      %11 = tensor.insert %9 into %6[%10] : tensor<1055xf32>
	      xla_gpu.yield %11 : tensor<1055xf32>
	    }
	    %12 = xla_gpu.sync_threads (%3) : tensor<1055xf32>
	    %13 = xla_gpu.loop ()[%14, %15] -> () in "()[s0, s1] -> (), domain: s0 in [0, 3], s1 in [0, 0]" iter_args(%16 = %out) -> (tensor<96x64xf32>) {
	      %17, %18 = xla_gpu.apply_indexing "(d0, d1, d2) -> ((d0 floordiv 2) * 32 + d1 floordiv 32 + d2 * 8, (d0 mod 2) * 32 + d1 mod 32), domain: d0 in [0, 5], d1 in [0, 255], d2 in [0, 3]"(%1, %0, %14)
	      %19 = xla_gpu.apply_indexing "(d0, d1) -> (d0 floordiv 32 + (d0 mod 32) * 33 + d1 * 8), domain: d0 in [0, 255], d1 in [0, 3]"(%0, %14)
	      %20 = tensor.extract %12[%19] : tensor<1055xf32>
	      %21 = tensor.extract %in_1[%17, %18] : tensor<96x64xf32>
	      %22 = arith.addf %20, %21 : f32
	      %23 = tensor.insert %22 into %16[%17, %18] : tensor<96x64xf32>
	      xla_gpu.yield %23 : tensor<96x64xf32>
	    }
	    func.return %13 : tensor<96x64xf32>
	  }
	}
)
