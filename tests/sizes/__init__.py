"""Every op that kernels, libraries or native code of heron's own compute, at every class of size."""
