"""Transfers between a device and its host while a program runs: infeed, outfeed, and channels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from heron.errors import HeronError

Arrays = Sequence[np.ndarray]


class Host:
    """The host's side of one device.

    Args:
        infeed: what each `infeed` gets, in order: flat arrays, or the one array.
        received: by channel id, what each `recv` with is_host_transfer gets, in order.

    ``outfeed`` and ``sent`` (by channel id) collect what `outfeed` and `send` hand over.
    """

    def __init__(
        self,
        infeed: Iterable[np.ndarray | Arrays] = (),
        received: Mapping[int, Iterable[np.ndarray | Arrays]] | None = None,
    ) -> None:
        self._infeed = iter(infeed)
        self._received = {channel: iter(values) for channel, values in (received or {}).items()}
        self.outfeed: list[Any] = []
        self.sent: dict[int, list[Any]] = {}

    def next_infeed(self) -> Arrays:
        """Raises EVAL007 when nothing is left."""
        return _next(self._infeed, "the infeed", "Host(infeed=[...])")

    def next_received(self, channel: int) -> Arrays:
        """Raises EVAL007 when nothing is left."""
        supply = self._received.get(channel, iter(()))
        return _next(supply, f"channel {channel} from the host", "Host(received={channel: [...]})")

    def send(self, channel: int, value: Any) -> None:
        """Keep what the device sends."""
        self.sent.setdefault(channel, []).append(value)


def _next(supply: Any, what: str, hint: str) -> Arrays:
    given = next(supply, None)
    if given is None:
        raise HeronError("EVAL007", f"{what} has nothing to give", why="the program asks for more", hint=hint)
    return [np.asarray(given)] if isinstance(given, (np.ndarray, np.generic)) else given
