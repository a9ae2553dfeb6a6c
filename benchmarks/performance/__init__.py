"""``python -m benchmarks.performance``: docs/reference/performance.md, heron's speed on a CPU and its limits."""
