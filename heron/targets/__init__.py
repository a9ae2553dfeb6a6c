"""Machines to compile for, as data files: `get(name)` gives one, `all_targets()` those a user can name."""

from heron.targets.target import Target, all_targets, get, names

__all__ = ["Target", "all_targets", "get", "names"]
