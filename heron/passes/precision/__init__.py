"""The element types that a program computes in."""
