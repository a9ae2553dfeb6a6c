"""Autotuning: what a model only estimates is measured on a device, and kept in a lock file."""
