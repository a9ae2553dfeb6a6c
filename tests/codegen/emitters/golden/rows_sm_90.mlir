// reduce, (4, 1, 1) x (128, 1, 1), 0 bytes shared
// form: rows of 512, threads: 32, vector: 4, reason: 'q' reduces 512 elements to one
ModuleOp(
	builtin.module {
	  func.func private @k_combine_0_0(%0: f32, %1: f32) -> f32 {
	    %2 = arith.addf %0, %1 fastmath<reassoc> : f32
	    func.return %2 : f32
	  }
	  func.func @k(%in: tensor<16x512xbf16>, %in_1: tensor<16xf32>, %out: tensor<16xf32>) -> tensor<16xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 0.000000e+00 : f32
	    %1 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %2 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %3 = xla_gpu.loop (%2, %1)[%4, %5] -> () in "(d0, d1)[s0, s1] -> (), domain: d0 in [0, 3], d1 in [0, 127], s0 in [0, 3], s1 in [0, 3], d0 * 4 + d1 floordiv 32 in [0, 15]" iter_args(%6 = %0) -> (f32) {
	      %7, %8 = xla_gpu.apply_indexing "(d0, d1, d2, d3) -> (d0 * 4 + d1 floordiv 32, (d1 mod 32) * 4 + d2 * 128 + d3), domain: d0 in [0, 3], d1 in [0, 127], d2 in [0, 3], d3 in [0, 3]"(%2, %1, %4, %5)
	      %9 = tensor.extract %in[%7, %8] : tensor<16x512xbf16>
	      %10 = arith.extf %9 : bf16 to f32
	      %11 = arith.addf %6, %10 fastmath<reassoc> : f32
	      xla_gpu.yield %11 : f32
	    }
	    %12 = xla_gpu.shuffle_reduce @k_combine_0_0(%3) to 16 : f32
	    %13 = xla_gpu.loop (%2, %1)[] -> () in "(d0, d1) -> (), domain: d0 in [0, 3], d1 in [0, 127], d0 * 4 + d1 floordiv 32 in [0, 15], d1 mod 32 in [0, 0]" iter_args(%14 = %out) -> (tensor<16xf32>) {
	      %15 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 4 + d1 floordiv 32), domain: d0 in [0, 3], d1 in [0, 127]"(%2, %1)
	      %16 = tensor.extract %in_1[%15] : tensor<16xf32>
	      %17 = arith.mulf %12, %16 : f32
	      %18 = tensor.insert %17 into %14[%15] : tensor<16xf32>
	      xla_gpu.yield %18 : tensor<16xf32>
	    }
	    func.return %13 : tensor<16xf32>
	  }
	}
)
