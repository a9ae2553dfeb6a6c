"""From lowered MLIR to LLVM text, host machine code, PTX and cubins. Nothing here imports llvmlite until it is used."""
