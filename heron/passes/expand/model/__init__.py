"""Helpers that several passes of `expand` share."""
