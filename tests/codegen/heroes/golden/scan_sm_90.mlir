// loop, (5, 1, 1) x (128, 1, 1), 0 bytes shared
// vector: 1, reason: a short scan: each result by itself
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<6x100xf32>, %out: tensor<6x100xf32>) -> tensor<6x100xf32> attributes {xla_gpu.entry} {
	    %0 = arith.constant 0.000000e+00 : f32
	    %1 = arith.constant 599 : index
	    %2 = "gpu.thread_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %3 = "gpu.block_id"() <{dimension = #gpu<dim x>}> : () -> index
	    %4 = xla_gpu.apply_indexing "(d0, d1) -> (d0 * 128 + d1), domain: d0 in [0, 4], d1 in [0, 127]"(%3, %2)
	    %5 = arith.cmpi sle, %4, %1 : index
	    %6 = scf.if %5 -> (tensor<6x100xf32>) {
	      %7, %8 = xla_gpu.apply_indexing "(d0, d1) -> ((d0 * 128 + d1) floordiv 100, (d0 * 128 + d1) mod 100), domain: d0 in [0, 4], d1 in [0, 127]"(%3, %2)
	      %9 = xla_gpu.loop (%8)[%10, %11] -> () in "(d0)[s0, s1] -> (), domain: d0 in [0, 99], s0 in [0, 0], s1 in [0, 99], d0 + s1 - 99 in [0, 99]" iter_args(%12 = %0) -> (f32) {
	        %13 = xla_gpu.apply_indexing "(d0, d1) -> (d0 + d1 - 99), domain: d0 in [0, 99], d1 in [0, 99]"(%8, %11)
	        %14 = tensor.extract %in[%7, %13] : tensor<6x100xf32>
	        %15 = arith.addf %12, %14 fastmath<reassoc> : f32
	        xla_gpu.yield %15 : f32
	      }
	      %16 = tensor.insert %9 into %out[%7, %8] : tensor<6x100xf32>
	      scf.yield %16 : tensor<6x100xf32>
	    } else {
	      scf.yield %out : tensor<6x100xf32>
	    }
	    func.return %6 : tensor<6x100xf32>
	  }
	}
)
