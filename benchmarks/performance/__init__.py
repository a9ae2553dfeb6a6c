"""``python -m benchmarks.performance``: docs/performance.md, how fast heron is on a CPU and what holds it back."""
