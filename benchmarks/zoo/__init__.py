"""``python -m benchmarks.zoo [WORD]``: programs as JAX's users write them, on heron and on JAX's CPU by turns.

None of them played a part in building heron. The result is the distribution of the ratios, worst first, not their mean
alone.
"""
