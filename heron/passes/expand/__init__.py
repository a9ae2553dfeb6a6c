"""Passes that replace an op by others, for targets or passes that lack it."""
