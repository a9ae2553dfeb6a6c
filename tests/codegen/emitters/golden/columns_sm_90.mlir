// reduce, (3, 1, 1) x (1024, 1, 1), 4352 bytes shared
// form: columns of 96, tile: 64x16, vector: 1, reason: 'r' reduces 96 elements to one
ModuleOp(
	builtin.module {
	  func.func private @k_combine_0_0(%0: f32, %1: f32) -> f32 {
	    %2 = arith.addf %0, %1 fastmath<reassoc> : f32
	    func.return %2 : f32
	  }
	  func.func @k(%in: tensor<96x40xf32>, %out: tensor<40xf32>) -> tensor<40xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 0.000000e+00 : f32
	    %1 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %2 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %3 = xla_gpu.loop (%2, %1)[%4, %5] -> () in "(d0, d1)[s0, s1] -> (), domain: d0 in [0, 2], d1 in [0, 1023], s0 in [0, 1], s1 in [0, 0], d0 * 16 + d1 mod 16 in [0, 39], d1 floordiv 16 + s0 * 64 in [0, 95]" iter_args(%6 = %0) -> (f32) {
	      %7, %8 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d1 floordiv 16 + d2 * 64, d0 * 16 + d1 mod 16), domain: d0 in [0, 2], d1 in [0, 1023], d2 in [0, 1]"(%2, %1, %4)
	      %9 = tensor.extract %in[%7, %8] : tensor<96x40xf32>
	      %10 = arith.mulf %9, %9 : f32
	      %11 = arith.addf %6, %10 fastmath<reassoc> : f32
	      xla_gpu.yield %11 : f32
	    }
	    %12 = xla_gpu.allocate_shared : tensor<64x17xf32>
	    %13 = xla_gpu.loop ()[] -> () in "() -> ()" iter_args(%14 = %12) -> (tensor<64x17xf32>) {
	      %15, %16 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 16, d0 mod 16), domain: d0 in [0, 1023]"(%1)
	      %17 = tensor.insert %3 into %14[%15, %16] : tensor<64x17xf32>
	      xla_gpu.yield %17 : tensor<64x17xf32>
	    }
	    %18 = xla_gpu.sync_threads (%13) : tensor<64x17xf32>
	    %19 = xla_gpu.loop (%1)[%20] -> () in "(d0)[s0] -> (), domain: d0 in [0, 1023], s0 in [0, 1], d0 floordiv 32 in [0, 15]" iter_args(%21 = %0) -> (f32) {
	      %22, %23 = xla_gpu.apply_indexing "(d0, d1) -> (d0 mod 32 + d1 * 32, d0 floordiv 32), domain: d0 in [0, 1023], d1 in [0, 1]"(%1, %20)
	      %24 = tensor.extract %18[%22, %23] : tensor<64x17xf32>
	      %25 = arith.addf %21, %24 fastmath<reassoc> : f32
	      xla_gpu.yield %25 : f32
	    }
	    %26 = xla_gpu.shuffle_reduce @k_combine_0_0(%19) to 16 : f32
	    %27 = xla_gpu.loop (%2, %1)[] -> () in "(d0, d1) -> (), domain: d0 in [0, 2], d1 in [0, 1023], d0 * 16 + d1 floordiv 32 in [0, 39], d1 floordiv 32 in [0, 15], d1 mod 32 in [0, 0]" iter_args(%28 = %out) -> (tensor<40xf32>) {
	      %29 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 16 + d1 floordiv 32), domain: d0 in [0, 2], d1 in [0, 1023]"(%2, %1)
	      %30 = tensor.insert %26 into %28[%29] : tensor<40xf32>
	      xla_gpu.yield %30 : tensor<40xf32>
	    }
	    func.return %27 : tensor<40xf32>
	  }
	}
)
