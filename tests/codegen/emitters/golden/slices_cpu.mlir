// slices, 80 work items
// loops: 1 + 1, reason: all 2 outputs are slices
ModuleOp(
	builtin.module {
	  func.func @k(%in: tensor<30xf32>, %in_1: tensor<50xf32>, %out: tensor<30xf32>, %out_1: tensor<50xf32>, %lo: index, %hi: index) -> (tensor<30xf32>, tensor<50xf32>) attributes {xla_gpu.entry} {
	    %0 = arith.constant 50 : index
	    %1 = arith.constant 1 : index
	    %2 = arith.constant 30 : index
	    %3 = arith.constant 0 : index
	    %4 = arith.maxsi %lo, %3 : index
	    %5 = arith.minsi %4, %2 : index
	    %6 = arith.maxsi %hi, %3 : index
	    %7 = arith.minsi %6, %2 : index
	    %8 = scf.for %9 = %5 to %7 step %1 iter_args(%10 = %out) -> (tensor<30xf32>) {
	      %11 = tensor.extract %in[%9] : tensor<30xf32>
	      %12 = arith.negf %11 : f32
	      %13 = tensor.insert %12 into %10[%9] : tensor<30xf32>
	      scf.yield %13 : tensor<30xf32>
	    }
	    %14 = arith.subi %lo, %2 : index
	    %15 = arith.maxsi %14, %3 : index
	    %16 = arith.minsi %15, %0 : index
	    %17 = arith.subi %hi, %2 : index
	    %18 = arith.maxsi %17, %3 : index
	    %19 = arith.minsi %18, %0 : index
	    %20 = scf.for %21 = %16 to %19 step %1 iter_args(%22 = %out_1) -> (tensor<50xf32>) {
	      %23 = tensor.extract %in_1[%21] : tensor<50xf32>
	      %24 = math.absf %23 : f32
	      %25 = tensor.insert %24 into %22[%21] : tensor<50xf32>
	      scf.yield %25 : tensor<50xf32>
	    }
	    func.return %8, %20 : tensor<30xf32>, tensor<50xf32>
	  }
	}
)
