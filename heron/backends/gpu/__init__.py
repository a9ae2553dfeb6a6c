"""The GPU backend: NVIDIA GPUs, real, simulated, or compiled for without one."""
