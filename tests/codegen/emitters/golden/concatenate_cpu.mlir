// concatenate, 8 work items
// loops: 1x1, pieces: 1, reason: 'c.1' joins 2 operands
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<8x24xf32>, %in_1: tensor<8x40xf32>, %in_2: tensor<8x64xf32>, %out: tensor<8x64xf32>, %lo: index, %hi: index) -> tensor<8x64xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = arith.constant 24 : index
	    %2 = scf.for %3 = %lo to %hi step %0 iter_args(%4 = %out) -> (tensor<8x64xf32>) {
	      %5 = xla_gpu.loop ()[%6] -> () in "()[s0] -> (), domain: s0 in [0, 63]" iter_args(%7 = %4) -> (tensor<8x64xf32>) {
	        %8 = arith.cmpi slt, %6, %1 : index
	        %9 = scf.if %8 -> (f32) {
	          %10 = tensor.extract %in[%3, %6] : tensor<8x24xf32>
	          scf.yield %10 : f32
	        } else {
	          %11 = xla_gpu.apply_indexing "(d0) -> (d0 - 24), domain: d0 in [0, 63]"(%6)
	          %12 = tensor.extract %in_1[%3, %11] : tensor<8x40xf32>
	          scf.yield %12 : f32
	        }
	        %13 = tensor.extract %in_2[%3, %6] : tensor<8x64xf32>
	        %14 = arith.mulf %9, %13 : f32
	        %15 = tensor.insert %14 into %7[%3, %6] : tensor<8x64xf32>
	        xla_gpu.yield %15 : tensor<8x64xf32>
	      }
	      scf.yield %5 : tensor<8x64xf32>
	    }
	    func.return %2 : tensor<8x64xf32>
	  }
	}
)
