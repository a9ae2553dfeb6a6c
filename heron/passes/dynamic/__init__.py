"""Bounded dynamic dimensions: programs whose sizes are known at run time only, as programs of fixed sizes."""
