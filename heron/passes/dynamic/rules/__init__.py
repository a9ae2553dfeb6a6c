"""How each op works on padded arrays: what must be masked or moved. Their sizes are known already."""

from heron.passes.dynamic.rules import elements, gather_scatter, movement, order, sums, windows  # noqa: F401
from heron.passes.dynamic.rules.table import padded_form

__all__ = ["padded_form"]
