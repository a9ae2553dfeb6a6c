"""Which element types a program computes in."""
