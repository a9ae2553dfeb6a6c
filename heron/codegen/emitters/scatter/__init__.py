"""Scatters: updates combined into an array."""
