"""The links that the axes of a mesh cross, as the worth of a byte that is sent along each of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from heron.hlo.sharding.atoms import AtomicMesh
from heron.targets import Link, Target


def weighted(mesh: AtomicMesh, target: Target | None) -> AtomicMesh:
    """The mesh for a machine: a byte along an atom that leaves a domain of devices is worth as many bytes as the
    nearest link sends in its time, and a collective as many as that sends in its latency. Without a machine all bytes
    are alike, and nothing else counts."""
    if target is None or not mesh.sizes:
        return mesh
    weights = tuple(_weight(mesh.devices, atom, target.links) for atom in range(len(mesh.sizes)))
    nearest = target.links[0]
    weights = weights if any(w != 1.0 for w in weights) else ()
    return replace(mesh, weights=weights, latency=nearest.bandwidth * nearest.seconds)


def _weight(devices: np.ndarray, atom: int, links: tuple[Link, ...]) -> float:
    for link in links:
        domains = devices // link.devices if link.devices else np.zeros_like(devices)
        if (domains == domains.take([0], axis=atom)).all():
            return links[0].bandwidth / link.bandwidth
    return links[0].bandwidth / links[-1].bandwidth
