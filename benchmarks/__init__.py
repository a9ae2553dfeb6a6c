"""Benchmarks: heron and its peer in turn, in one run, as ratios. See README.md here."""
