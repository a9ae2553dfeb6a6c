"""Helpers that several passes of `dynamic` share."""
