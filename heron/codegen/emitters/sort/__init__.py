"""Sorts: merge and radix sorts for CPUs, bitonic and radix sorts for GPUs."""
