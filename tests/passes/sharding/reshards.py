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

    `avoidable` are those among them where a plan with no larger share always exists (`has_small_plan`).
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
            if has_small_plan(p.mesh, part.dims, part.sharding, wanted):
                found.avoidable.append(text)
        return made(p, part, wanted, steps)

    with patch.object(emit, "_resharded", noted):
        yield found


def has_small_plan(mesh: AtomicMesh, dims: tuple[int, ...], old: TensorSharding, new: TensorSharding) -> bool:
    """Whether there is always a plan with no share larger than both ends: where every dimension is a multiple of its
    numbers of parts, or the split of one dimension changes and nothing else. `test_plan.py` holds the planner to it."""
    ends = [(n, mesh.size(axes)) for s in (old, new) for n, axes in zip(dims, s.dims, strict=True)]
    changed = sum(a != b for a, b in zip(old.dims, new.dims, strict=True))
    return all(n % parts == 0 for n, parts in ends) or (changed == 1 and old.unreduced == new.unreduced)
