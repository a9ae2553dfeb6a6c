"""Sizes of bounded dynamic dimensions as formulas of what the program is given and computes."""

from heron.analysis.dynamic_sizes import rules_of_sums as _rules  # noqa: F401  fills the table of rules
from heron.analysis.dynamic_sizes.infer import Check, DynamicSizes
from heron.analysis.dynamic_sizes.size import Place, Size, below, dynamic_places

__all__ = ["Check", "DynamicSizes", "Place", "Size", "below", "dynamic_places"]
