// scatter, (1, 1, 1) x (80, 1, 1), 0 bytes shared
// updates: sorted, reason: 'r' is a scatter
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<9x4xf32>, %in_1: tensor<20x1xi32>, %in_2: tensor<20x4xf32>, %out: tensor<9x4xf32> {xla_gpu.alias = 0 : i64}) -> tensor<9x4xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 20 : index
	    %1 = arith.constant 19 : index
	    %2 = arith.constant true
	    %3 = arith.constant 1 : index
	    %4 = arith.constant 0 : index
	    %5 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %6 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %7, %8 = xla_gpu.apply_indexing "(d0) -> (d0 floordiv 4, d0 mod 4), domain: d0 in [0, 79]"(%5)
	    %9 = tensor.extract %in_1[%7, %4] : tensor<20x1xi32>
	    %10 = arith.index_cast %9 : i32 to index
	    %11 = xla_gpu.loop (%10)[] -> () in "(d0) -> (), domain: d0 in [-2147483648, 2147483647], d0 in [0, 8]" iter_args(%12 = %out) -> (tensor<9x4xf32>) {
	      %13 = tensor.extract %in_1[%7, %4] : tensor<20x1xi32>
	      %14 = arith.subi %7, %3 : index
	      %15 = arith.maxsi %14, %4 : index
	      %16 = tensor.extract %in_1[%15, %4] : tensor<20x1xi32>
	      %17 = arith.cmpi eq, %13, %16 : i32
	      %18 = arith.cmpi eq, %7, %4 : index
	      %19 = arith.xori %17, %2 : i1
	      %20 = arith.ori %18, %19 : i1
	      %21 = scf.if %20 -> (tensor<9x4xf32>) {
	        %22 = tensor.extract %12[%10, %8] : tensor<9x4xf32>
	        %23 = tensor.extract %in_2[%7, %8] : tensor<20x4xf32>
	        %24 = arith.addf %22, %23 : f32
	        %25 = arith.addi %7, %3 : index
	        %26, %27 = scf.while (%28 = %25, %29 = %24) : (index, f32) -> (index, f32) {
	          %30 = arith.minsi %28, %1 : index
	          %31 = tensor.extract %in_1[%30, %4] : tensor<20x1xi32>
	          %32 = arith.cmpi slt, %28, %0 : index
	          %33 = arith.cmpi eq, %13, %31 : i32
	          %34 = arith.andi %32, %33 : i1
	          scf.condition(%34) %28, %29 : index, f32
	        } do {
	        ^bb0(%35: index, %36: f32):
	          %37 = arith.addi %35, %3 : index
	          %38 = tensor.extract %in_2[%35, %8] : tensor<20x4xf32>
	          %39 = arith.addf %36, %38 : f32
	          scf.yield %37, %39 : index, f32
	        }
	        %40 = tensor.insert %27 into %12[%10, %8] : tensor<9x4xf32>
	        scf.yield %40 : tensor<9x4xf32>
	      } else {
	        scf.yield %12 : tensor<9x4xf32>
	      }
	      xla_gpu.yield %21 : tensor<9x4xf32>
	    }
	    func.return %11 : tensor<9x4xf32>
	  }
	}
)
