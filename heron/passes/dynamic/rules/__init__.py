"""Rules of each op on padded arrays: masks and moves. The sizes are already known."""

from heron.passes.dynamic.rules import elements, gather_scatter, movement, order, sums, windows  # noqa: F401
from heron.passes.dynamic.rules.table import padded_form

__all__ = ["padded_form"]
