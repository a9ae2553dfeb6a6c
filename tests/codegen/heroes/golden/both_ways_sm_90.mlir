// reduce, (7, 1, 1) x (1024, 1, 1), 4224 bytes shared
// form: columns of 96 and rows of 128, reason: 'a.1' reduces 96 elements to one
ModuleOp(
	builtin.module {
	  func.func private @k_combine_0_0(%0: f32, %1: f32) -> f32 {
	    %2 = arith.addf %0, %1 fastmath<reassoc> : f32
	    func.return %2 : f32
	  }
	  func.func private @k_combine_1_0(%0: f32, %1: f32) -> f32 {
	    %2 = arith.addf %0, %1 fastmath<reassoc> : f32
	    func.return %2 : f32
	  }
	  func.func @k(%in: tensor<96x128xf32>, %out: tensor<128xf32>, %out_1: tensor<96xf32>) -> (tensor<128xf32>, tensor<96xf32>) attributes {xla_gpu.entry} {
	    %0 = arith.constant 4 : index
	    %1 = arith.constant 0.000000e+00 : f32
	    %2 = arith.constant 3 : index
	    %3 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %4 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %5 = arith.cmpi sle, %4, %2 : index
	    %6 = scf.if %5 -> (tensor<128xf32>) {
	      %7 = xla_gpu.loop (%4, %3)[%8, %9] -> () in "(d0, d1)[s0, s1] -> (), domain: d0 in [0, 3], d1 in [0, 1023], s0 in [0, 2], s1 in [0, 0], d0 * 32 + d1 mod 32 in [0, 127]" iter_args(%10 = %1) -> (f32) {
	        %11, %12 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d1 floordiv 32 + d2 * 32, d0 * 32 + d1 mod 32), domain: d0 in [0, 3], d1 in [0, 1023], d2 in [0, 2]"(%4, %3, %8)
	        %13 = tensor.extract %in[%11, %12] : tensor<96x128xf32>
	        %14 = arith.addf %10, %13 fastmath<reassoc> : f32
	        xla_gpu.yield %14 : f32
	      }
	      %15 = xla_gpu.allocate_shared : tensor<32x33xf32>
	      %16 = xla_gpu.loop ()[] -> () in "() -> ()" iter_args(%17 = %15) -> (tensor<32x33xf32>) {
	        %18, %19 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 32, d0 mod 32), domain: d0 in [0, 1023]"(%3)
	        %20 = tensor.insert %7 into %17[%18, %19] : tensor<32x33xf32>
	        xla_gpu.yield %20 : tensor<32x33xf32>
	      }
	      %21 = xla_gpu.sync_threads (%16) : tensor<32x33xf32>
	      %22, %23 = xla_gpu.apply_indexing "(d0) -> (d0 mod 32, d0 floordiv 32), domain: d0 in [0, 1023]"(%3)
	      %24 = tensor.extract %21[%22, %23] : tensor<32x33xf32>
	      %25 = xla_gpu.shuffle_reduce @k_combine_0_0(%24) to 16 : f32
	      %26 = xla_gpu.loop (%4, %3)[] -> () in "(d0, d1) -> (), domain: d0 in [0, 3], d1 in [0, 1023], d0 * 32 + d1 floordiv 32 in [0, 127], d1 floordiv 32 in [0, 31], d1 mod 32 in [0, 0]" iter_args(%27 = %out) -> (tensor<128xf32>) {
	        %28 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 32 + d1 floordiv 32), domain: d0 in [0, 3], d1 in [0, 1023]"(%4, %3)
	        %29 = tensor.insert %25 into %27[%28] : tensor<128xf32>
	        xla_gpu.yield %29 : tensor<128xf32>
	      }
	      scf.yield %26 : tensor<128xf32>
	    } else {
	      scf.yield %out : tensor<128xf32>
	    }
	    %30 = arith.cmpi sge, %4, %0 : index
	    %31 = scf.if %30 -> (tensor<96xf32>) {
	      %32 = xla_gpu.apply_indexing "(d0) -> (d0 - 4), domain: d0 in [0, 6]"(%4)
	      %33 = xla_gpu.loop (%32, %3)[%34, %35] -> () in "(d0, d1)[s0, s1] -> (), domain: d0 in [0, 2], d1 in [0, 1023], s0 in [0, 0], s1 in [0, 3], d0 * 32 + d1 floordiv 32 in [0, 95]" iter_args(%36 = %1) -> (f32) {
	        %37, %38 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d0 * 32 + d1 floordiv 32, (d1 mod 32) * 4 + d2), domain: d0 in [0, 2], d1 in [0, 1023], d2 in [0, 3]"(%32, %3, %35)
	        %39 = tensor.extract %in[%37, %38] : tensor<96x128xf32>
	        %40 = arith.addf %36, %39 fastmath<reassoc> : f32
	        xla_gpu.yield %40 : f32
	      }
	      %41 = xla_gpu.shuffle_reduce @k_combine_1_0(%33) to 16 : f32
	      %42 = xla_gpu.loop (%32, %3)[] -> () in "(d0, d1) -> (), domain: d0 in [0, 2], d1 in [0, 1023], d0 * 32 + d1 floordiv 32 in [0, 95], d1 mod 32 in [0, 0]" iter_args(%43 = %out_1) -> (tensor<96xf32>) {
	        %44 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 32 + d1 floordiv 32), domain: d0 in [0, 2], d1 in [0, 1023]"(%32, %3)
	        %45 = tensor.insert %41 into %43[%44] : tensor<96xf32>
	        xla_gpu.yield %45 : tensor<96xf32>
	      }
	      scf.yield %42 : tensor<96xf32>
	    } else {
	      scf.yield %out_1 : tensor<96xf32>
	    }
	    func.return %6, %31 : tensor<128xf32>, tensor<96xf32>
	  }
	}
)
