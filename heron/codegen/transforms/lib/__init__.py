"""Helpers that several transforms share."""
