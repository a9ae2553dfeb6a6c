// scatter, (1, 1, 1) x (80, 1, 1), 0 bytes shared
// updates: few, reason: 'r' is a scatter
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<9x4xf32>, %in_1: tensor<20x1xi32>, %in_2: tensor<20x4xf32>, %out: tensor<9x4xf32> {xla_gpu.alias = 0 : i64}) -> tensor<9x4xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant true
	    %1 = arith.constant 8 : index
	    %2 = arith.constant false
	    %3 = arith.constant 0 : index
	    %4 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %5 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %6, %7 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 79]"(%4)
	    %8 = tensor.extract %in_1[%6, %3] : tensor<20x1xi32>
	    %9 = arith.index_cast %8 : i32 to index
	    %10 = xla_gpu.loop (%9)[] -> () in "(d0) -> (), domain: d0 in [-2147483648, 2147483647], d0 in [0, 8]" iter_args(%11 = %out) -> (tensor<9x4xf32>) {
	      %12 = xla_gpu.loop (%6)[%13] -> () in "(d0)[s0] -> (), domain: d0 in [0, 19], s0 in [0, 19], -d0 + s0 in [-20, -1]" iter_args(%14 = %2) -> (i1) {
	        %15 = tensor.extract %in_1[%13, %3] : tensor<20x1xi32>
	        %16 = arith.index_cast %15 : i32 to index
	        %17 = arith.cmpi sge, %16, %3 : index
	        %18 = arith.cmpi sle, %16, %1 : index
	        %19 = arith.andi %17, %18 : i1
	        %20 = xla_gpu.apply_indexing "(d0, d1) -> (d0 - d1), domain: d0 in [0, 8], d1 in [-2147483648, 2147483647]"(%9, %16)
	        %21 = arith.cmpi sge, %20, %3 : index
	        %22 = arith.cmpi sle, %20, %3 : index
	        %23 = arith.andi %19, %21 : i1
	        %24 = arith.andi %23, %22 : i1
	        %25 = arith.ori %14, %24 : i1
	        xla_gpu.yield %25 : i1
	      }
	      %26 = arith.xori %12, %0 : i1
	      %27 = scf.if %26 -> (tensor<9x4xf32>) {
	        %28 = tensor.extract %11[%9, %7] : tensor<9x4xf32>
	        %29 = xla_gpu.loop (%6)[%30] -> () in "(d0)[s0] -> (), domain: d0 in [0, 19], s0 in [0, 19], -d0 + s0 in [0, 20]" iter_args(%31 = %28) -> (f32) {
	          %32 = tensor.extract %in_1[%30, %3] : tensor<20x1xi32>
	          %33 = arith.index_cast %32 : i32 to index
	          %34 = arith.cmpi sge, %33, %3 : index
	          %35 = arith.cmpi sle, %33, %1 : index
	          %36 = arith.andi %34, %35 : i1
	          %37 = xla_gpu.apply_indexing "(d0, d1) -> (d0 - d1), domain: d0 in [0, 8], d1 in [-2147483648, 2147483647]"(%9, %33)
	          %38 = arith.cmpi sge, %37, %3 : index
	          %39 = arith.cmpi sle, %37, %3 : index
	          %40 = arith.andi %36, %38 : i1
	          %41 = arith.andi %40, %39 : i1
	          %42 = scf.if %41 -> (f32) {
	            %43 = tensor.extract %in_2[%30, %7] : tensor<20x4xf32>
	            %44 = arith.addf %31, %43 : f32
	            scf.yield %44 : f32
	          } else {
	            scf.yield %31 : f32
	          }
	          xla_gpu.yield %42 : f32
	        }
	        %45 = tensor.insert %29 into %11[%9, %7] : tensor<9x4xf32>
	        scf.yield %45 : tensor<9x4xf32>
	      } else {
	        scf.yield %11 : tensor<9x4xf32>
	      }
	      xla_gpu.yield %27 : tensor<9x4xf32>
	    }
	    func.return %10 : tensor<9x4xf32>
	  }
	}
)
