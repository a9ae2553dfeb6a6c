"""Helpers that several passes of `schedule` share."""
