// concatenate, 16 work items
// loops: 1x1 + 1x1, pieces: 2, reason: 'c.1' joins 2 operands
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<8x24xf32>, %in_1: tensor<8x40xf32>, %in_2: tensor<8x64xf32>, %out: tensor<8x64xf32>, %lo: index, %hi: index) -> tensor<8x64xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 8 : index
	    %2 = arith.constant 0 : index
	    %3 = arith.maxsi %lo, %2 : index
	    %4 = arith.minsi %3, %1 : index
	    %5 = arith.maxsi %hi, %2 : index
	    %6 = arith.minsi %5, %1 : index
	    %7 = scf.for %8 = %4 to %6 step %0 iter_args(%9 = %out) -> (tensor<8x64xf32>) {
	      %10 = xla_gpu.loop ()[%11] -> () in "()[s0] -> (), domain: s0 in [0, 23]" iter_args(%12 = %9) -> (tensor<8x64xf32>) {
	        %13 = tensor.extract %in[%8, %11] : tensor<8x24xf32>
	        %14 = tensor.extract %in_2[%8, %11] : tensor<8x64xf32>
	        %15 = arith.mulf %13, %14 : f32
	        %16 = tensor.insert %15 into %12[%8, %11] : tensor<8x64xf32>
	        xla_gpu.yield %16 : tensor<8x64xf32>
	      }
	      scf.yield %10 : tensor<8x64xf32>
	    }
	    %17 = arith.subi %lo, %1 : index
	    %18 = arith.maxsi %17, %2 : index
	    %19 = arith.minsi %18, %1 : index
	    %20 = arith.subi %hi, %1 : index
	    %21 = arith.maxsi %20, %2 : index
	    %22 = arith.minsi %21, %1 : index
	    %23 = scf.for %24 = %19 to %22 step %0 iter_args(%25 = %7) -> (tensor<8x64xf32>) {
	      %26 = xla_gpu.loop ()[%27] -> () in "()[s0] -> (), domain: s0 in [0, 39]" iter_args(%28 = %25) -> (tensor<8x64xf32>) {
	        %29 = tensor.extract %in_1[%24, %27] : tensor<8x40xf32>
	        %30 = xla_gpu.apply_indexing "(d0) -> (d0 + 24), domain: d0 in [0, 39]"(%27)
	        %31 = tensor.extract %in_2[%24, %30] : tensor<8x64xf32>
	        %32 = arith.mulf %29, %31 : f32
	        %33 = tensor.insert %32 into %28[%24, %30] : tensor<8x64xf32>
	        xla_gpu.yield %33 : tensor<8x64xf32>
	      }
	      scf.yield %26 : tensor<8x64xf32>
	    }
	    func.return %23 : tensor<8x64xf32>
	  }
	}
)
