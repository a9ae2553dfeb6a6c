// scan, (6, 1, 1) x (128, 1, 1), 16 bytes shared
// form: 128 threads a scan, elements: 1, reason: 'r' is a scan along dimension 1
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<6x100xf32>, %out: tensor<6x100xf32>) -> tensor<6x100xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 3 : index
	    %1 = arith.constant 0 : index
	    %2 = arith.constant 16 : index
	    %3 = arith.constant 8 : index
	    %4 = arith.constant 4 : index
	    %5 = arith.constant 2 : index
	    %6 = arith.constant 1 : index
	    %7 = arith.constant 99 : index
	    %8 = arith.constant 0.000000e+00 : f32
	    %9 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %10 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %11 = xla_gpu.allocate_shared : tensor<1x4xf32>
	    %12 = arith.minsi %9, %7 : index
	    %13 = tensor.extract %in[%10, %12] : tensor<6x100xf32>
	    %14 = xla_gpu.shuffle_up (%13) by 1 : f32
	    %15 = xla_gpu.apply_indexing "(d0) -> (d0 mod 32), domain: d0 in [0, 127]"(%9)
	    %16 = arith.cmpi sge, %15, %6 : index
	    %17 = scf.if %16 -> (f32) {
	      %18 = arith.addf %14, %13 : f32
	      scf.yield %18 : f32
	    } else {
	      scf.yield %13 : f32
	    }
	    %19 = xla_gpu.shuffle_up (%17) by 2 : f32
	    %20 = arith.cmpi sge, %15, %5 : index
	    %21 = scf.if %20 -> (f32) {
	      %22 = arith.addf %19, %17 : f32
	      scf.yield %22 : f32
	    } else {
	      scf.yield %17 : f32
	    }
	    %23 = xla_gpu.shuffle_up (%21) by 4 : f32
	    %24 = arith.cmpi sge, %15, %4 : index
	    %25 = scf.if %24 -> (f32) {
	      %26 = arith.addf %23, %21 : f32
	      scf.yield %26 : f32
	    } else {
	      scf.yield %21 : f32
	    }
	    %27 = xla_gpu.shuffle_up (%25) by 8 : f32
	    %28 = arith.cmpi sge, %15, %3 : index
	    %29 = scf.if %28 -> (f32) {
	      %30 = arith.addf %27, %25 : f32
	      scf.yield %30 : f32
	    } else {
	      scf.yield %25 : f32
	    }
	    %31 = xla_gpu.shuffle_up (%29) by 16 : f32
	    %32 = arith.cmpi sge, %15, %2 : index
	    %33 = scf.if %32 -> (f32) {
	      %34 = arith.addf %31, %29 : f32
	      scf.yield %34 : f32
	    } else {
	      scf.yield %29 : f32
	    }
	    %35 = xla_gpu.sync_threads (%11) : tensor<1x4xf32>
	    %36 = xla_gpu.loop (%9)[] -> () in "(d0) -> (), domain: d0 in [0, 127], d0 mod 32 in [31, 31]" iter_args(%37 = %35) -> (tensor<1x4xf32>) {
	      %38 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 32), domain: d0 in [0, 127]"(%9)
	      %39 = tensor.insert %33 into %37[%1, %38] : tensor<1x4xf32>
	      xla_gpu.yield %39 : tensor<1x4xf32>
	    }
	    %40 = xla_gpu.sync_threads (%36) : tensor<1x4xf32>
	    %41 = tensor.extract %40[%1, %1] : tensor<1x4xf32>
	    %42 = arith.addf %8, %41 : f32
	    %43 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 32), domain: d0 in [0, 127]"(%9)
	    %44 = arith.cmpi sge, %43, %6 : index
	    %45 = scf.if %44 -> (f32) {
	      scf.yield %42 : f32
	    } else {
	      scf.yield %8 : f32
	    }
	    %46 = tensor.extract %40[%1, %6] : tensor<1x4xf32>
	    %47 = arith.addf %42, %46 : f32
	    %48 = arith.cmpi sge, %43, %5 : index
	    %49 = scf.if %48 -> (f32) {
	      scf.yield %47 : f32
	    } else {
	      scf.yield %45 : f32
	    }
	    %50 = tensor.extract %40[%1, %5] : tensor<1x4xf32>
	    %51 = arith.addf %47, %50 : f32
	    %52 = arith.cmpi sge, %43, %0 : index
	    %53 = scf.if %52 -> (f32) {
	      scf.yield %51 : f32
	    } else {
	      scf.yield %49 : f32
	    }
	    %54 = tensor.extract %40[%1, %0] : tensor<1x4xf32>
	    %55 = arith.addf %51, %54 : f32
	    %56 = xla_gpu.shuffle_up (%33) by 1 : f32
	    %57 = arith.cmpi sge, %15, %6 : index
	    %58 = scf.if %57 -> (f32) {
	      %59 = arith.addf %53, %56 : f32
	      scf.yield %59 : f32
	    } else {
	      scf.yield %53 : f32
	    }
	    %60 = arith.addf %58, %13 : f32
	    %61 = xla_gpu.loop (%9, %10)[] -> () in "(d0, d1) -> (), domain: d0 in [0, 127], d1 in [0, 5], d0 in [0, 99], d1 in [0, 5]" iter_args(%62 = %out) -> (tensor<6x100xf32>) {
	      %63 = tensor.insert %60 into %62[%10, %9] : tensor<6x100xf32>
	      xla_gpu.yield %63 : tensor<6x100xf32>
	    }
	    func.return %61 : tensor<6x100xf32>
	  }
	}
)
