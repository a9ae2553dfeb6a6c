"""Rows that are reduced, and values computed from a row and its reductions."""
