"""The cost model's times of GPU kernels beside figures that others measured and published."""
