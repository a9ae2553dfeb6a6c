"""The name heron goes by in JAX: a platform of its own, or ``cpu`` where it takes the place of JAX's CPU."""

from __future__ import annotations

import os

from heron.errors import HeronError
from heron.once import once
from heron.pjrt.device import PLATFORM

#: the environment variable that says so
VARIABLE = "HERON_AS"
CPU = "cpu"


@once
def platform() -> str:
    """The platform's name in this process, as the environment had it when JAX first asked.

    Raises PJRT026 for a name heron cannot have.
    """
    asked = os.environ.get(VARIABLE) or PLATFORM
    if asked not in (PLATFORM, CPU):
        raise HeronError("PJRT026", f"{VARIABLE}={asked}: heron's names in JAX are '{PLATFORM}' and '{CPU}'")
    return asked


def is_cpu() -> bool:
    """Whether heron takes the place of JAX's CPU."""
    return platform() == CPU


def is_ours(backend: object) -> bool:
    """Whether a client, or a device, of JAX's is heron's."""
    return getattr(backend, "platform", None) == platform()
