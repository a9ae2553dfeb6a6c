"""Partitioned ops that are more than the same op on parts, one family a file."""
