"""Helpers that several passes of `calls` share."""
