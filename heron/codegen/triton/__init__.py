"""Block-level kernels: from a fusion to Triton's IR, and that to machine code where Triton is installed."""
