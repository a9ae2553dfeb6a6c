"""A CUDA driver for rehearsals, on machines with no GPU.

`driver.Recorder` speaks libcuda's C interface: it records every call, checks handles, addresses and order, fails when told
to, and runs kernels by the simulator's code, so that whole programs give their values through the runtime that a GPU
would see. `compiling.compile` makes programs whose kernels it knows.
"""
