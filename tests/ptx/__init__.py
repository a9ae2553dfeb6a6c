"""PTX, run without a GPU: its text becomes LLVM's by the meanings of NVIDIA's manual, for the simulator to run."""
