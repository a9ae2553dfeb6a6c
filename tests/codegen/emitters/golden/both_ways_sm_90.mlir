// reduce, (11, 1, 1) x (1024, 1, 1), 4352 bytes shared
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
	    %0 = arith.constant 8 : index
	    %1 = arith.constant 0.000000e+00 : f32
	    %2 = arith.constant 7 : index
	    %3 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %4 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %5 = arith.cmpi sle, %4, %2 : index
	    %6 = scf.if %5 -> (tensor<128xf32>) {
	      %7 = xla_gpu.loop (%4, %3)[%8, %9] -> () in "(d0, d1)[s0, s1] -> (), domain: d0 in [0, 7], d1 in [0, 1023], s0 in [0, 1], s1 in [0, 0], d0 * 16 + d1 mod 16 in [0, 127], d1 floordiv 16 + s0 * 64 in [0, 95]" iter_args(%10 = %1) -> (f32) {
	        %11, %12 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d1 floordiv 16 + d2 * 64, d0 * 16 + d1 mod 16), domain: d0 in [0, 7], d1 in [0, 1023], d2 in [0, 1]"(%4, %3, %8)
	        %13 = tensor.extract %in[%11, %12] : tensor<96x128xf32>
	        %14 = arith.addf %10, %13 fastmath<reassoc> : f32
	        xla_gpu.yield %14 : f32
	      }
	      %15 = xla_gpu.allocate_shared : tensor<64x17xf32>
	      %16 = xla_gpu.loop ()[] -> () in "() -> ()" iter_args(%17 = %15) -> (tensor<64x17xf32>) {
	        %18, %19 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 16, d0 mod 16), domain: d0 in [0, 1023]"(%3)
	        %20 = tensor.insert %7 into %17[%18, %19] : tensor<64x17xf32>
	        xla_gpu.yield %20 : tensor<64x17xf32>
	      }
	      %21 = xla_gpu.sync_threads (%16) : tensor<64x17xf32>
	      %22 = xla_gpu.loop (%3)[%23] -> () in "(d0)[s0] -> (), domain: d0 in [0, 1023], s0 in [0, 1], d0 floordiv 32 in [0, 15]" iter_args(%24 = %1) -> (f32) {
	        %25, %26 = xla_gpu.apply_indexing "(d0, d1) -> (d0 mod 32 + d1 * 32, d0 floordiv 32), domain: d0 in [0, 1023], d1 in [0, 1]"(%3, %23)
	        %27 = tensor.extract %21[%25, %26] : tensor<64x17xf32>
	        %28 = arith.addf %24, %27 fastmath<reassoc> : f32
	        xla_gpu.yield %28 : f32
	      }
	      %29 = xla_gpu.shuffle_reduce @k_combine_0_0(%22) to 16 : f32
	      %30 = xla_gpu.loop (%4, %3)[] -> () in "(d0, d1) -> (), domain: d0 in [0, 7], d1 in [0, 1023], d0 * 16 + d1 floordiv 32 in [0, 127], d1 floordiv 32 in [0, 15], d1 mod 32 in [0, 0]" iter_args(%31 = %out) -> (tensor<128xf32>) {
	        %32 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 16 + d1 floordiv 32), domain: d0 in [0, 7], d1 in [0, 1023]"(%4, %3)
	        %33 = tensor.insert %29 into %31[%32] : tensor<128xf32>
	        xla_gpu.yield %33 : tensor<128xf32>
	      }
	      scf.yield %30 : tensor<128xf32>
	    } else {
	      scf.yield %out : tensor<128xf32>
	    }
	    %34 = arith.cmpi sge, %4, %0 : index
	    %35 = scf.if %34 -> (tensor<96xf32>) {
	      %36 = xla_gpu.apply_indexing "(d0) -> (d0 - 8), domain: d0 in [0, 10]"(%4)
	      %37 = xla_gpu.loop (%36, %3)[%38, %39] -> () in "(d0, d1)[s0, s1] -> (), domain: d0 in [0, 2], d1 in [0, 1023], s0 in [0, 0], s1 in [0, 3], d0 * 32 + d1 floordiv 32 in [0, 95]" iter_args(%40 = %1) -> (f32) {
	        %41, %42 = xla_gpu.apply_indexing "(d0, d1, d2) -> (d0 * 32 + d1 floordiv 32, (d1 mod 32) * 4 + d2), domain: d0 in [0, 2], d1 in [0, 1023], d2 in [0, 3]"(%36, %3, %39)
	        %43 = tensor.extract %in[%41, %42] : tensor<96x128xf32>
	        %44 = arith.addf %40, %43 fastmath<reassoc> : f32
	        xla_gpu.yield %44 : f32
	      }
	      %45 = xla_gpu.shuffle_reduce @k_combine_1_0(%37) to 16 : f32
	      %46 = xla_gpu.loop (%36, %3)[] -> () in "(d0, d1) -> (), domain: d0 in [0, 2], d1 in [0, 1023], d0 * 32 + d1 floordiv 32 in [0, 95], d1 mod 32 in [0, 0]" iter_args(%47 = %out_1) -> (tensor<96xf32>) {
	        %48 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 32 + d1 floordiv 32), domain: d0 in [0, 2], d1 in [0, 1023]"(%36, %3)
	        %49 = tensor.insert %45 into %47[%48] : tensor<96xf32>
	        xla_gpu.yield %49 : tensor<96xf32>
	      }
	      scf.yield %46 : tensor<96xf32>
	    } else {
	      scf.yield %out_1 : tensor<96xf32>
	    }
	    func.return %6, %35 : tensor<128xf32>, tensor<96xf32>
	  }
	}
)
