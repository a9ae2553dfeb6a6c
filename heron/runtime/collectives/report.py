"""Errors of devices that wait for others: who waits where, whatever engine exchanges the arrays."""

from __future__ import annotations

from collections.abc import Sequence

from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.collectives.state import COMPUTES, ENDED

_NAMED = 4  # devices that an error tells one by one
_SAME_ORDER = "every device of a group must come to the same collectives, in the same order"


@dataclass(frozen=True)
class Report:
    """The places of devices in a launch.

    ``places``: number and place of each device: the number of a collective, `COMPUTES` or `ENDED`. ``names``: those of
    the program's collectives.
    """

    places: Sequence[tuple[int, int]]
    names: Sequence[str]

    @property
    def waiting(self) -> int:
        """The number of devices that wait."""
        return sum(at >= 0 for _, at in self.places)

    def stuck(self) -> HeronError:
        what = f"{self.waiting} of {len(self.places)} devices wait for each other forever"
        return HeronError("RUN087", what, why=self.told(), hint=_SAME_ORDER)

    def mismatch(self) -> HeronError:
        what = "devices of one group are at different collectives"
        return HeronError("RUN087", what, why=self.told(), hint=_SAME_ORDER)

    def outside(self) -> HeronError:
        return outside(self.told())

    def late(self, seconds: float) -> HeronError:
        return HeronError(
            "RUN088",
            f"devices have waited {seconds:.0f} s for others at a collective",
            why=self.told(),
            hint="the option device_timeout sets the limit; 0: none",
        )

    def late_to_join(self, seconds: float, cliques: Sequence[str]) -> HeronError:
        """``cliques``: those that some devices of this process have not become members of."""
        return HeronError(
            "RUN088",
            f"devices have waited {seconds:.0f} s for others to join a communicator",
            why=f"it is that of {', and of '.join(cliques)}; {self.told()}",
            hint="all processes must run the same programs in the same order; NCCL_DEBUG=INFO shows how they connect",
        )

    def told(self) -> str:
        """The devices that wait, with the place, and those that do not."""
        waiting = [f"device {n} waits at {self.names[at]}" for n, at in self.places if at >= 0]
        more = [f"{len(waiting) - _NAMED} more wait"] if len(waiting) > _NAMED else []
        for state, does in ((COMPUTES, "computes"), (ENDED, "has ended")):
            found = [str(n) for n, at in self.places if at == state]
            if found:
                more.append(f"device {', '.join(found)} {does}")
        return "; ".join(waiting[:_NAMED] + more)


def outside(why: str, where: str | None = None) -> HeronError:
    """The error of a device that names rows which are not there."""
    return HeronError(
        "RUN084",
        "a device names rows outside of the arrays that devices exchange",
        where=where,
        why=why,
        hint="offsets and sizes of a ragged-all-to-all must lie within its operand and its output",
    )
