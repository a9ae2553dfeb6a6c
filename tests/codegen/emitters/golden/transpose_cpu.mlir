// (1, 1, 1) x (1, 1, 1): 32x32 in 16x16 blocks
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<64x96xf32>, %in_1: tensor<96x64xf32>, %out: tensor<96x64xf32>, %lo: index, %hi: index) -> tensor<96x64xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 1 : index
	    %1 = scf.for %2 = %lo to %hi step %0 iter_args(%3 = %out) -> (tensor<96x64xf32>) {
	      %4 = tensor.empty() : tensor<32x32xf32>
	      %5 = xla_gpu.loop ()[%6, %7] -> () in "()[s0, s1] -> (), domain: s0 in [0, 1], s1 in [0, 1]" iter_args(%8 = %4) -> (tensor<32x32xf32>) {
	        %9, %10 = xla_gpu.apply_indexing "(d0, d1, d2) -> ((d0 mod 2) * 32 + d2 * 16, (d0 floordiv 2) * 32 + d1 * 16), domain: d0 in [0, 5], d1 in [0, 1], d2 in [0, 1]"(%2, %6, %7)
	        %11, %12 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 16, d1 * 16), domain: d0 in [0, 1], d1 in [0, 1]"(%6, %7)
	        %13 = xla_gpu.transpose_block %in[%9, %10], %8[%11, %12] size 16 steps (96, 32) : tensor<64x96xf32>, tensor<32x32xf32>
	        xla_gpu.yield %13 : tensor<32x32xf32>
	      }
	      %14 = xla_gpu.loop ()[%15, %16] -> () in "()[s0, s1] -> (), domain: s0 in [0, 31], s1 in [0, 31]" iter_args(%17 = %3) -> (tensor<96x64xf32>) {
	        %18, %19 = xla_gpu.apply_indexing "(d0, d1, d2) -> ((d0 floordiv 2) * 32 + d1, (d0 mod 2) * 32 + d2), domain: d0 in [0, 5], d1 in [0, 31], d2 in [0, 31]"(%2, %15, %16)
	        %20 = tensor.extract %5[%15, %16] : tensor<32x32xf32>
	        %21 = tensor.extract %in_1[%18, %19] : tensor<96x64xf32>
	        %22 = arith.addf %20, %21 : f32
	        %23 = tensor.insert %22 into %17[%18, %19] : tensor<96x64xf32>
	        xla_gpu.yield %23 : tensor<96x64xf32>
	      }
	      scf.yield %14 : tensor<96x64xf32>
	    }
	    func.return %1 : tensor<96x64xf32>
	  }
	}
)
