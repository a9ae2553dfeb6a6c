"""The families of cases, one a file. `FAMILIES` has the functions that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.sizes.case import Case
from tests.sizes.families import (
    convolutions,
    elementwise,
    factorisations,
    indexing,
    movement,
    products,
    reductions,
    sorting,
    transforms,
    windows,
)

FAMILIES: tuple[Callable[[], Iterator[Case]], ...] = (
    products.cases,
    convolutions.cases,
    reductions.cases,
    windows.cases,
    sorting.cases,
    indexing.cases,
    transforms.cases,
    factorisations.cases,
    movement.cases,
    elementwise.cases,
)


def all_cases() -> Iterator[Case]:
    """Every case, in an order that never changes."""
    for family in FAMILIES:
        yield from family()
