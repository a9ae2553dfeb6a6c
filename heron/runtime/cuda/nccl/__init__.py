"""Devices of one program on several GPUs: collectives by NCCL.

`binding` calls NCCL, `operations` says which of its calls a collective is, `cliques` makes and keeps communicators,
`exchanges` enqueues a program's collectives on one device, `gpus` chooses the GPUs, `crew` has a thread for each of
them, `team` has all of that for a program, and `watch` looks after a launch.
"""
