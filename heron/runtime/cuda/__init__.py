"""NVIDIA GPUs: the driver, memory, streams, and libraries."""
