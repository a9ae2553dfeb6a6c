"""MLIR as the emitters build it: the op builder, types, dialects."""
