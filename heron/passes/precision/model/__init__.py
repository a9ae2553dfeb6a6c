"""Helpers that several passes of `precision` share."""
