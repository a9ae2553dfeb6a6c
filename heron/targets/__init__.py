"""Machines to compile for, as data files: `get(name)` gives one, `all_targets()` those a user can name."""

from heron.targets.target import WARP, Target, all_targets, get, names

__all__ = ["WARP", "Target", "all_targets", "get", "names"]
