"""Devices of one program on several GPUs: collectives by NCCL.

`binding` calls NCCL, `operations` says which of its calls a collective is, `cliques` makes and keeps communicators,
`exchanges` enqueues a program's collectives on one device, `crew` has a thread for each device, `watch` looks after a
launch.
"""
