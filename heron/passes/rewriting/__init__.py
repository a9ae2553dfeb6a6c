"""Rewriting programs: rules and the driver that applies them, and helpers that build instructions."""
