"""NVIDIA GPUs through the driver's C interface (libcuda), by ctypes: nothing to install but the driver itself.

`driver` loads libcuda and turns what it answers into errors, `device` has contexts, streams and modules, `allocator`
device memory, `plan` and `graph` make CUDA graphs of thunks, `executable` runs programs. No driver is looked for before
a program for a GPU is called or the target ``cuda`` is named.
"""
