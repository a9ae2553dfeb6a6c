"""Helpers that several passes of `fusion` share."""
