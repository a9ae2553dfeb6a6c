"""Machines to compile for, as data files: `get(name)` returns one, `all_targets()` those that a user can name."""

from heron.targets.naming import all_targets, get, names
from heron.targets.target import WARP, Link, Target

__all__ = ["WARP", "Link", "Target", "all_targets", "get", "names"]
