"""Helpers that several passes of `library` share."""
