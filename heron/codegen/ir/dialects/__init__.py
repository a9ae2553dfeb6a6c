"""The xDSL dialects heron adds to MLIR's own."""
