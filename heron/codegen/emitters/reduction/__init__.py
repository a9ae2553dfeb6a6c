"""Reductions with everything computed before and after them."""
