"""Helpers that several passes of `layout` share."""
