"""Helpers that several passes of `control_flow` share."""
