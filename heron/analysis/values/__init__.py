"""Facts about the values instructions can have: trip counts, bounds, signs, indexed arrays."""
