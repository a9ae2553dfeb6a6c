"""Passes about calls, while loops and conditionals."""
