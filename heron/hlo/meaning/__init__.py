"""The meanings of ops in NumPy: arithmetic of every element type, products, reductions, sorts, random bits."""
