"""Rules that turn operations into HLO, one file for each family. Importing this package fills `block.RULES`."""

from heron.frontends.stablehlo.lower import (  # noqa: F401
    calls,
    chlo,
    collectives,
    communication,
    control_flow,
    dynamic,
    einsum,
    elementwise,
    indexing,
    linalg,
    movement,
    products,
    reductions,
    sharding,
)
