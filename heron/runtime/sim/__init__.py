"""The simulated GPU: a kernel's own LLVM IR, compiled for the host, one coroutine per GPU thread.

Blocks run one after another; threads of a block take turns and stop at barriers and shuffles. With checks on, every
access is held against its buffer and shared memory is watched for races.
"""
