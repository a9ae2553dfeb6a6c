"""Sharded programs: their shardings read, spread over all values, and used to make one program for every device."""
