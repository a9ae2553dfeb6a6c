"""``python -m benchmarks.prediction``: the cost model's time of each kernel of the zoo beside the measured one."""
