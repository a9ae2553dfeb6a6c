"""Sharded JAX programs as users write them: on eight heron devices, on JAX's CPU with eight devices, and on one device.

``python -m tests.devices`` runs all programs of `programs` and compares values, element types and the shardings of
results. ``--as-cpu`` presents heron as `cpu`; ``--target sim:sm_90`` runs on simulated GPUs.
"""
