"""Helpers that several passes of `simplify` share."""
