"""heron on an NVIDIA GPU: ``python -m benchmarks.gpu`` measures every kernel and every program, beside its peers."""
