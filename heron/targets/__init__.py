"""Machines to compile for, as data files: `get(name)` returns one, `all_targets()` those that a user can name."""

from heron.targets.target import WARP, Target, all_targets, get, names

__all__ = ["WARP", "Target", "all_targets", "get", "names"]
