"""The convolution op on the CPU: sums in registers, matrix products in place, and what each of them costs."""
