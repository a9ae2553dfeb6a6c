"""Helpers that several passes of `sharding` share."""
