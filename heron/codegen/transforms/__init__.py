"""MLIR-level transforms of kernels, one a file; `pipeline.py` lists them in order."""
