"""Helpers that several passes of `copies` share."""
