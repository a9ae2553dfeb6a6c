"""Reshards in which a device has more of an array on the way than before and after, as a full replication is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from heron.hlo.sharding.atoms import AtomicMesh, TensorSharding
from heron.passes.sharding.partition import emit


@dataclass
class Reshards:
    """The reshards seen: their number, and of those with a larger share on the way a text each.

    `avoidable` are those among them of sizes that all parts divide: there a plan with no larger share always exists
    (`test_plan.py`). Of other sizes the shares of every plan may be larger.
    """

    seen: int = 0
    beyond: list[str] = field(default_factory=list)
    avoidable: list[str] = field(default_factory=list)


@contextmanager
def watched() -> Iterator[Reshards]:
    """The reshards that the partitioner makes in this block."""
    found, made = Reshards(), emit._resharded

    def noted(p: Any, part: Any, wanted: TensorSharding, steps: Any) -> Any:
        found.seen += 1
        if not steps.within:
            text = f"{part.shape.bare} {p.text(part.sharding)} to {p.text(wanted)} by {steps}"
            found.beyond.append(text)
            if is_even(p.mesh, part.dims, part.sharding) and is_even(p.mesh, part.dims, wanted):
                found.avoidable.append(text)
        return made(p, part, wanted, steps)

    with patch.object(emit, "_resharded", noted):
        yield found


def is_even(mesh: AtomicMesh, dims: tuple[int, ...], s: TensorSharding) -> bool:
    """Whether every dimension is a multiple of its number of parts."""
    return all(n % mesh.size(axes) == 0 for n, axes in zip(dims, s.dims, strict=True))
