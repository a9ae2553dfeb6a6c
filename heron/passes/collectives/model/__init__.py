"""Helpers of the passes on collectives."""
